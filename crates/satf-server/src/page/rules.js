// What may be recommended, and what is to come sooner or later.

import { find, make, settled } from "./elements.js";
import { picker } from "./picker.js";
import { changed, onChange, rule, state, title } from "./store.js";

const KINDS = { boost: "Boost", exclude: "Leave out", only: "Only this" };

const soon = settled(() => changed("rules"), 350);

export function startRules() {
  const where = make("input", {
    id: "where", type: "text", spellcheck: "false", autocapitalize: "off", autocomplete: "off", value: state.rules.where,
    "aria-describedby": "where-help where-fault",
    input: () => {
      state.rules.where = where.value.trim();
      soon();
    },
  });
  const count = make("input", {
    id: "n", type: "number", min: "1", max: "100", value: state.rules.n,
    input: () => {
      const n = Number.parseInt(count.value, 10);
      if (n >= 1 && n <= 100) {
        state.rules.n = n;
        soon();
      }
    },
  });
  const again = make("input", {
    id: "again", type: "checkbox",
    change: () => {
      state.rules.again = again.checked;
      changed("rules");
    },
  });
  const kind = make("select", { id: "kind" }, ...Object.entries(KINDS).map(([value, name]) => make("option", { value }, name)));
  const { root } = picker({ label: "Item", placeholder: "A title or an id…", picked: (id) => rule(kind.value, id) });
  find("rules").replaceChildren(
    make("label", { class: "field", for: "where" }, "Filter over attributes", where),
    make("div", { id: "where-help", class: "hint chips" }),
    make("p", { id: "where-fault", class: "fault", role: "status" }),
    make(
      "div",
      { class: "pair" },
      make("label", { class: "field", for: "n" }, "How many", count),
      make("label", { class: "check", for: "again" }, again, "Items of the history may come again"),
    ),
    make("div", { class: "pair items" }, make("label", { class: "field", for: "kind" }, "Rule", kind), root),
    make("ul", { id: "item-rules", class: "steps", "aria-label": "Rules about items" }),
  );
  onChange((what) => {
    if (what === "model") showAttributes(where);
    if (what === "rules") showItems();
  });
}

// The attributes that a filter can ask for: a click begins one.
function showAttributes(where) {
  const attributes = state.about?.attributes ?? [];
  where.disabled = attributes.length === 0;
  where.placeholder = attributes.length ? example(attributes) : "no attributes";
  const begin = ({ name, kind }) => {
    const plain = /^[A-Za-z_][A-Za-z0-9_]*$/.test(name) ? name : `"${name}"`;
    const start = { number: `${plain} < `, flag: `${plain} = true` }[kind] ?? `${plain} = `;
    where.value = where.value.trim() ? `${where.value.trim()} and ${start}` : start;
    where.focus();
    if (kind === "flag") where.dispatchEvent(new Event("input"));
  };
  find("where-help").replaceChildren(
    ...(attributes.length
      ? attributes.slice(0, 12).map((attribute) =>
          make("button", { type: "button", class: "quiet chip", title: attribute.kind, click: () => begin(attribute) }, attribute.name),
        )
      : ["The server was started without a file of items (--items), so there is nothing to filter by."]),
  );
}

function example(attributes) {
  const number = attributes.find(({ kind }) => kind === "number");
  const flag = attributes.find(({ kind }) => kind === "flag");
  return number ? `${number.name} < 100` : flag ? `${flag.name} = true` : `${attributes[0].name} = …`;
}

function showItems() {
  const rows = state.rules.items.map((own, place) => {
    const factor = make("input", {
      type: "number", min: "0.01", step: "any", value: own.factor, "aria-label": `Factor of ${title(own.id)}`,
      input: () => {
        const value = Number.parseFloat(factor.value);
        if (value > 0 && Number.isFinite(value)) {
          own.factor = value;
          quietly();
        }
      },
    });
    return make(
      "li",
      {},
      make(
        "div",
        { class: "step" },
        make("span", { class: "tag" }, KINDS[own.kind]),
        make("span", { class: "name" }, title(own.id)),
        own.kind === "boost" ? make("label", { class: "factor" }, "×", factor) : null,
        make(
          "button",
          {
            type: "button", class: "icon", "aria-label": `Remove the rule about ${title(own.id)}`, title: "Remove",
            click: () => {
              state.rules.items.splice(place, 1);
              changed("rules");
            },
          },
          "×",
        ),
      ),
    );
  });
  find("item-rules").replaceChildren(...rows);
}

// The fields stay as they are while somebody types in them.
const quietly = settled(() => changed("factor"), 350);

// What is wrong with the filter, or nothing.
export function showFault(message) {
  find("where-fault").textContent = message ?? "";
  find("where").setAttribute("aria-invalid", String(Boolean(message)));
}
