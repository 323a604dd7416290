// How the weight of a past item falls with its age: the model's own weights.

import { chart } from "./chart.js";
import { colour, find, make, rounded } from "./elements.js";
import { onChange, state, title } from "./store.js";

const curve = chart("What a past item counts, by its age");

export function startCurve() {
  onChange((what) => {
    if (what === "model" || what === "history") show();
  });
}

function show() {
  const { about, history } = state;
  if (!about) return;
  const weights = about.attention;
  if (!weights.length) {
    find("curve").replaceChildren(
      make(
        "div",
        { class: "empty" },
        make("p", {}, `${about.name} (${about.kind}) has no attention curve.`),
        make("p", { class: "hint" }, "It keeps no weights by age: every past item counts alike, or what it counts depends on the whole history."),
      ),
    );
    return;
  }
  // The newest item has age 1.
  const dots = history
    .map(({ id }, place) => [history.length - 1 - place, colour(place), title(id)])
    .filter(([age]) => age < weights.length);
  const last = weights.length - 1;
  const total = weights.reduce((sum, weight) => sum + Math.abs(weight), 0);
  let sum = 0;
  const half = weights.findIndex((weight) => (sum += Math.abs(weight)) >= total / 2) + 1;
  const isFlat = weights.every((weight) => Math.abs(weight - weights[0]) <= 1e-9 * Math.abs(weights[0]));
  const words = isFlat
    ? `Every one of the last ${weights.length} items counts the same.`
    : half === 1
      ? "The newest item alone has half of the weight."
      : `The newest ${half} items have half of the weight of ${weights.length}.`;
  const middle = Math.floor(last / 2);
  const labels = last > 3 ? [[0, "newest"], [middle, `${middle + 1}`], [last, `${last + 1} back`]] : [[0, "newest"], [last, `${last + 1} back`]];
  const series = [{ values: weights, tint: "c0", filled: true, dots }];
  // Ages far back where nothing counts any more are left out.
  const known = find("curve").querySelector(".chart");
  if (known !== curve.root) find("curve").replaceChildren(curve.root, make("p", { id: "curve-words" }), values());
  find("curve-words").textContent = words;
  find("curve-words").className = "hint";
  find("curve").querySelector("tbody").replaceChildren(...weights.map(line));
  curve.show({ series, labels, words });
}

function values() {
  return make(
    "details",
    {},
    make("summary", {}, "The weights"),
    make(
      "div",
      { class: "scroll", tabindex: "0", role: "region", "aria-label": "The weights by age" },
      make(
        "table",
        {},
        make("thead", {}, make("tr", {}, make("th", {}, "Age"), make("th", { class: "number" }, "Weight"), make("th", { class: "number" }, "Exactly"))),
        make("tbody", {}),
      ),
    ),
  );
}

function line(weight, age) {
  return make(
    "tr",
    {},
    make("td", {}, age === 0 ? "1 (newest)" : String(age + 1)),
    make("td", { class: "number" }, rounded(weight)),
    make("td", { class: "number code" }, String(weight)),
  );
}
