// Makes a page of /openapi.json: routes with what they take and give, and the types they speak of.
"use strict";

function element(name, text, children = []) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  made.append(...children);
  return made;
}

function nameOf(reference) {
  return reference.split("/").pop();
}

// What a schema says, in a line.
function shown(schema) {
  if (!schema) return document.createTextNode("anything");
  if (schema.$ref) {
    const link = element("a", nameOf(schema.$ref));
    link.href = "#" + nameOf(schema.$ref);
    return link;
  }
  const several = schema.oneOf || schema.anyOf;
  if (several) {
    const parts = several.flatMap((part, at) => (at ? [" or ", shown(part)] : [shown(part)]));
    return element("span", undefined, parts);
  }
  if (schema.enum) return document.createTextNode(schema.enum.map((value) => JSON.stringify(value)).join(" or "));
  const type = [].concat(schema.type || "anything").join(" or ");
  if (schema.items && type.includes("array")) return element("span", undefined, ["list of ", shown(schema.items)]);
  return document.createTextNode(type);
}

function row(name, kind, text) {
  return element("tr", undefined, [
    element("td", undefined, [element("code", name)]),
    element("td", undefined, [kind]),
    element("td", text || ""),
  ]);
}

function route(method, path, operation) {
  const title = element("h3", undefined, [element("span", method.toUpperCase(), []), " ", element("code", path)]);
  title.firstChild.className = "method";
  const section = element("section", undefined, [title, element("p", operation.summary || "")]);
  if (operation.description) section.append(element("p", operation.description));
  const rows = (operation.parameters || []).map((parameter) =>
    row(parameter.name, shown(parameter.schema), parameter.description),
  );
  const body = operation.requestBody && operation.requestBody.content["application/json"];
  if (body) rows.push(row("body", shown(body.schema), ""));
  for (const [status, response] of Object.entries(operation.responses || {})) {
    const content = response.content && Object.values(response.content)[0];
    rows.push(row(status, content ? shown(content.schema) : document.createTextNode(""), response.description));
  }
  section.append(element("table", undefined, rows));
  return section;
}

function type(name, schema) {
  const title = element("h3", name);
  title.id = name;
  const section = element("section", undefined, [title, element("p", schema.description || "")]);
  const properties = Object.entries(schema.properties || {});
  if (properties.length === 0) section.append(element("p", undefined, [shown(schema)]));
  section.append(
    element("table", undefined, properties.map(([key, value]) => row(key, shown(value), value.description))),
  );
  return section;
}

async function main() {
  const response = await fetch("/openapi.json");
  const api = await response.json();
  document.getElementById("about").textContent = api.info.description;
  const routes = document.getElementById("routes");
  for (const [path, methods] of Object.entries(api.paths)) {
    for (const [method, operation] of Object.entries(methods)) routes.append(route(method, path, operation));
  }
  const schemas = document.getElementById("schemas");
  for (const [name, schema] of Object.entries(api.components.schemas)) schemas.append(type(name, schema));
}

main().catch((error) => {
  document.getElementById("about").textContent = "openapi.json could not be read: " + error.message;
});
