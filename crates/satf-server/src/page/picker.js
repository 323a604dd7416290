// A field that completes titles and ids while somebody types: an ARIA combobox with a list.

import { call, latest, query } from "./api.js";
import { counted, make } from "./elements.js";
import { learn, state } from "./store.js";

const SHOWN = 8;
let pickers = 0;

// Whether the id says more than the title.
const isOther = ({ title, item_id }) => title && title.toLowerCase() !== String(item_id).toLowerCase();

// `picked` is called with an id. Whatever is typed can be taken as an id too, if `free` is given.
export function picker({ label, placeholder, picked, free = false }) {
  pickers += 1;
  const id = `picker-${pickers}`;
  const once = latest();
  let options = [];
  let active = -1;
  let asked = 0;

  const input = make("input", {
    id, type: "text", role: "combobox", autocomplete: "off", autocapitalize: "off", spellcheck: "false", placeholder,
    "aria-expanded": "false", "aria-controls": `${id}-list`, "aria-autocomplete": "list",
    input: () => complete(),
    focus: () => complete(),
    blur: () => close(),
    keydown: (event) => key(event),
  });
  const list = make("ul", { id: `${id}-list`, role: "listbox", "aria-label": label, class: "options", hidden: true });
  // The field keeps the focus while the list is clicked.
  list.addEventListener("mousedown", (event) => event.preventDefault());
  const root = make("div", { class: "picker" }, make("label", { class: "field", for: id }, label, input), list);

  function close() {
    // What was asked before does not open the list again.
    asked += 1;
    list.hidden = true;
    active = -1;
    input.setAttribute("aria-expanded", "false");
    input.removeAttribute("aria-activedescendant");
  }

  function choose(option) {
    input.value = "";
    close();
    picked(option.id);
    input.focus();
  }

  function point(to) {
    list.children[active]?.setAttribute("aria-selected", "false");
    active = (to + options.length) % options.length;
    const item = list.children[active];
    item.setAttribute("aria-selected", "true");
    item.scrollIntoView({ block: "nearest" });
    input.setAttribute("aria-activedescendant", item.id);
  }

  function show(message) {
    const rows = options.map((option, place) =>
      make(
        "li",
        { id: `${id}-${place}`, role: "option", "aria-selected": "false", click: () => choose(option) },
        make("span", { class: "name" }, option.name),
        make("span", { class: "hint" }, option.note),
      ),
    );
    if (!rows.length) rows.push(make("li", { class: "hint none", role: "presentation" }, message));
    list.replaceChildren(...rows);
    list.hidden = false;
    active = -1;
    input.setAttribute("aria-expanded", "true");
    input.removeAttribute("aria-activedescendant");
  }

  async function complete() {
    const typed = input.value.trim();
    asked += 1;
    const own = asked;
    try {
      const found = await once((signal) =>
        call(query("/v1/items", { prefix: typed, n: SHOWN, model: state.model }), { signal }),
      );
      if (!found || own !== asked || document.activeElement !== input) return;
      learn(found.items);
      options = found.items.map((item) => ({
        id: String(item.item_id),
        name: item.title ?? String(item.item_id),
        note: isOther(item) ? `${item.item_id} · ${counted(item.count)}×` : `${counted(item.count)}×`,
      }));
      const isKnown = options.some((option) => option.id === typed);
      if (free && typed && !isKnown) options.push({ id: typed, name: `“${typed}”`, note: "as an id" });
      show("No title and no id begins like this.");
    } catch (error) {
      if (own !== asked) return;
      options = [];
      show(error.message);
    }
  }

  function key(event) {
    if (event.key === "Escape") return close();
    const isOpen = !list.hidden && options.length > 0;
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      if (!isOpen) return void complete();
      const step = event.key === "ArrowDown" ? 1 : -1;
      return point(active < 0 && step < 0 ? options.length - 1 : active + step);
    }
    if (event.key === "Enter") {
      event.preventDefault();
      if (!isOpen) return void complete();
      // Enter takes what is pointed at, or what comes first for what was typed.
      if (active >= 0) return choose(options[active]);
      const typed = input.value.trim().toLowerCase();
      const same = options.find((option) => option.id.toLowerCase() === typed || option.name.toLowerCase() === typed);
      if (typed) return choose(same ?? options[0]);
    }
    return undefined;
  }

  return { root, input };
}
