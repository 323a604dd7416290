// Similar items as a walk: a click goes on, the crumbs lead back.

import { call, latest, query } from "./api.js";
import { find, make, rounded } from "./elements.js";
import { picker } from "./picker.js";
import { add, learn, onChange, state, title } from "./store.js";

const SHOWN = 8;
const once = latest();
// Where the walk went, the place it is at last.
let path = [];

export function startWalk() {
  const { root } = picker({ label: "Begin with", placeholder: "A title or an id…", picked: (id) => begin(id) });
  find("walk").replaceChildren(root, make("nav", { id: "crumbs", "aria-label": "The walk so far" }), make("div", { id: "similar" }));
  onChange((what) => {
    if (what === "model") look();
    if (what === "history" && !path.length) look();
  });
}

function begin(id) {
  path = [String(id)];
  look();
}

// Begins at an item and goes there.
export function walkTo(id) {
  begin(id);
  const section = find("walk").closest("section");
  const isCalm = window.matchMedia("(prefers-reduced-motion: reduce)").matches;
  section.scrollIntoView({ behavior: isCalm ? "auto" : "smooth", block: "start" });
  find("crumbs").querySelector("[aria-current]")?.focus({ preventScroll: true });
}

function go(to) {
  path = to;
  look().then(() => find("crumbs").querySelector("[aria-current]")?.focus({ preventScroll: true }));
}

function crumbs() {
  const made = path.map((id, place) => {
    const isHere = place === path.length - 1;
    const step = isHere
      ? make("span", { class: "crumb", "aria-current": "location", tabindex: "-1" }, title(id))
      : make("button", { type: "button", class: "crumb", click: () => go(path.slice(0, place + 1)) }, title(id));
    return make("li", {}, step);
  });
  find("crumbs").replaceChildren(make("ol", {}, ...made));
}

async function look() {
  crumbs();
  if (!path.length) {
    const last = state.history.at(-1);
    find("similar").replaceChildren(
      make(
        "div",
        { class: "empty" },
        make("p", {}, "Choose an item to see which others could stand in its place."),
        last ? make("button", { type: "button", class: "quiet chip", click: () => begin(last.id) }, title(last.id)) : null,
      ),
    );
    return;
  }
  try {
    const answer = await once((signal) =>
      call(query("/v1/similar", { item_id: path.at(-1), n: SHOWN, model: state.model }), { signal }),
    );
    if (answer) show(answer);
  } catch (error) {
    find("similar").replaceChildren(
      make("div", { class: "empty fault" }, make("p", {}, error.message), make("button", { type: "button", class: "quiet", click: look }, "Try again")),
    );
  }
}

function show({ items, measure }) {
  learn(items);
  if (!items.length) {
    find("similar").replaceChildren(make("p", { class: "empty" }, "Nothing is like it."));
    return;
  }
  const most = Math.max(1e-12, ...items.map(({ similarity }) => similarity));
  const line = ({ item_id, similarity }) => {
    const fill = make("span", { class: "piece c0" });
    fill.style.width = `${(100 * similarity) / most}%`;
    const name = title(item_id);
    return make(
      "li",
      { "data-item": String(item_id) },
      make(
        "div",
        { class: "line" },
        make(
          "button",
          { type: "button", class: "answer", "aria-label": `Go on to ${name}`, click: () => go([...path, String(item_id)]) },
          make("span", { class: "name" }, name),
          make("span", { class: "score" }, rounded(similarity)),
          make("span", { class: "bar" }, make("span", { class: "above all" }, fill)),
        ),
        make(
          "button",
          { type: "button", class: "icon take", "aria-label": `Add ${name} to the history`, title: "Add to the history", click: () => add(item_id) },
          "+",
        ),
      ),
    );
  };
  find("similar").replaceChildren(make("ol", { class: "list plain" }, ...items.map(line)), make("p", { class: "hint" }, `Measured by the ${measure}.`));
}
