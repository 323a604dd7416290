// The history: typed or clicked together, in order, with what was taken together.

import { call, query } from "./api.js";
import { colour, counted, find, make } from "./elements.js";
import { picker } from "./picker.js";
import { add, changed, learn, move, onChange, remove, state, title } from "./store.js";

const STARTERS = 8;
let popular = [];

export function startHistory() {
  const { root, input } = picker({
    label: "Add an item",
    placeholder: "A title or an id…",
    picked: add,
    free: true,
  });
  find("history-picker").replaceChildren(root);
  input.addEventListener("keydown", (event) => {
    if (event.key === "Backspace" && !input.value && state.history.length) remove(state.history.length - 1);
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.target.closest("input, select, textarea")) return;
    event.preventDefault();
    input.focus();
  });
  find("clear").addEventListener("click", () => {
    state.history = [];
    changed("history");
    input.focus();
  });
  onChange((what) => {
    if (what === "model") refresh().catch(() => {});
    if (what === "history") show();
  });
}

async function refresh() {
  const found = await call(query("/v1/popular", { n: STARTERS, model: state.model }));
  learn(found.items);
  popular = found.items;
  show();
}

function step({ id, joined }, place) {
  const name = title(id);
  const join = make(
    "button",
    {
      type: "button", class: "join", "aria-pressed": String(joined), "aria-label": `${name}: taken together with the one before`,
      title: joined ? "Taken together: click for one after the other" : "One after the other: click for taken together",
      click: () => {
        state.history[place].joined = !joined;
        changed("history");
        find("history").children[place]?.querySelector(".join")?.focus();
      },
    },
    joined ? "with" : "then",
  );
  const entry = make(
    "div",
    {
      class: "step", tabindex: "0", "aria-label": `${place + 1}: ${name}. Delete removes it, Alt and arrows move it.`,
      keydown: (event) => keys(event, place),
    },
    make("span", { class: `swatch ${colour(place)}` }),
    make("span", { class: "name" }, name),
    make(
      "button",
      {
        type: "button", class: "icon", "aria-label": `Remove ${name}`, title: "Remove",
        click: () => { remove(place); focusStep(place); },
      },
      "×",
    ),
  );
  return make("li", {}, place ? join : null, entry);
}

function keys(event, place) {
  if (event.target !== event.currentTarget) return;
  if (event.key === "Delete" || event.key === "Backspace") {
    event.preventDefault();
    remove(place);
    focusStep(place);
  }
  if (event.altKey && (event.key === "ArrowUp" || event.key === "ArrowDown")) {
    event.preventDefault();
    focusStep(move(place, event.key === "ArrowUp" ? -1 : 1));
  }
}

function focusStep(place) {
  const steps = find("history").querySelectorAll(".step");
  const next = steps[Math.min(place, steps.length - 1)] ?? find("history-picker").querySelector("input");
  next.focus();
}

function show() {
  find("history").replaceChildren(...state.history.map(step));
  find("clear").hidden = state.history.length === 0;
  const starters = popular.map((item) =>
    make(
      "button",
      { type: "button", class: "quiet chip", title: `taken ${counted(item.count)} times`, click: () => add(item.item_id) },
      item.title ?? String(item.item_id),
    ),
  );
  const empty = [make("p", { class: "empty" }, "Nothing yet. Type above, or begin with what is popular:"), make("div", { class: "chips" }, ...starters)];
  find("starters").replaceChildren(...(state.history.length ? [] : empty));
}
