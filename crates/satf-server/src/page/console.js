// Asks the server this page comes from.
"use strict";

const $ = (id) => document.getElementById(id);

async function call(path, body) {
  const headers = {};
  if ($("key").value) headers.authorization = "Bearer " + $("key").value;
  if (body) headers["content-type"] = "application/json";
  const response = await fetch(path, body ? { method: "POST", headers, body: JSON.stringify(body) } : { headers });
  const answer = await response.json();
  if (!response.ok) throw new Error(answer.error.message);
  return answer;
}

function cell(content) {
  const made = document.createElement("td");
  made.append(content);
  return made;
}

// How much of a score comes from which past item: as wide as its share.
function bar(explanation, largest) {
  const made = document.createElement("div");
  made.className = "bar";
  for (const { item_id, share } of explanation ? explanation.shares : []) {
    const part = document.createElement("span");
    part.style.width = Math.max(0, (100 * share) / largest) + "%";
    part.title = item_id + ": " + share.toPrecision(4);
    made.append(part);
  }
  return made;
}

async function recommend() {
  const history = $("history").value.split(",").map((id) => id.trim()).filter((id) => id);
  const request = { history, model: $("model").value || undefined, explain: true };
  if ($("where").value) request.where = $("where").value;
  const answer = await call("/v1/recommend", request);
  $("note").textContent =
    `${answer.model}, version ${answer.model_version}; unknown items: ${answer.unknown_items}` +
    (answer.fallback ? `; not from the history (${answer.fallback})` : "");
  const largest = Math.max(1e-9, ...answer.items.map((item) => item.score));
  $("items").replaceChildren(
    ...answer.items.map((item) => {
      const row = document.createElement("tr");
      row.append(cell(item.title || String(item.item_id)), cell(item.score.toPrecision(4)), cell(bar(item.explanation, largest)));
      return row;
    }),
  );
}

async function complete() {
  const parts = $("history").value.split(",");
  const typed = parts.pop().trim();
  const before = parts.length ? parts.join(",") + ", " : "";
  const found = await call("/v1/items?n=8&prefix=" + encodeURIComponent(typed));
  $("titles").replaceChildren(
    ...found.items.map((item) => {
      const option = document.createElement("option");
      option.value = before + item.item_id;
      option.label = item.title || String(item.item_id);
      return option;
    }),
  );
}

async function start() {
  const { models } = await call("/v1/models");
  $("model").replaceChildren(new Option("by the split, or the default", ""), ...models.map((model) => new Option(model.name, model.name)));
  await complete();
}

function shown(work) {
  return (event) => {
    event.preventDefault();
    work().catch((error) => ($("note").textContent = error.message));
  };
}

$("ask").addEventListener("submit", shown(recommend));
$("history").addEventListener("input", shown(complete));
$("key").addEventListener("change", shown(start));
start().catch((error) => ($("note").textContent = error.message));
