// What comes next, and which past item gave how much of each score.

import { call, latest } from "./api.js";
import { colour, find, make, rounded } from "./elements.js";
import { showFault } from "./rules.js";
import { add, learn, onChange, rule, state, steps, title } from "./store.js";
import { walkTo } from "./walk.js";

const REASONS = {
  empty_history: "The history is empty: these are the most popular items.",
  no_known_item: "The model knows no item of the history: these are the most popular items.",
};

const once = latest();
let open = new Set();

let isAsked = false;

export function startAnswers() {
  // Several changes at once are asked about once.
  onChange(() => {
    if (isAsked) return;
    isAsked = true;
    queueMicrotask(() => {
      isAsked = false;
      ask();
    });
  });
}

function request() {
  const { n, where, again, items } = state.rules;
  const of = (kind) => items.filter((rule) => rule.kind === kind);
  const only = of("only").map(({ id }) => id);
  return {
    history: steps(),
    n,
    model: state.model || undefined,
    where: where || undefined,
    allow_seen: again || undefined,
    exclude: of("exclude").map(({ id }) => id),
    only: only.length ? only : undefined,
    boost: of("boost").map(({ id, factor }) => ({ item_id: id, multiply: factor })),
    explain: state.about?.explains === true,
  };
}

async function ask() {
  if (!state.about) return;
  find("answers").setAttribute("aria-busy", "true");
  const started = performance.now();
  try {
    const answer = await once((signal) => call("/v1/recommend", { body: request(), signal }));
    if (!answer) return;
    showFault();
    show(answer, performance.now() - started);
  } catch (error) {
    if (error.message.startsWith("where")) {
      showFault(error.message.replace(/^where: /, ""));
      return;
    }
    fail(error);
  } finally {
    find("answers").removeAttribute("aria-busy");
  }
}

function fail(error) {
  const isBusy = error.status === 503;
  find("note").textContent = "";
  find("answered-by").textContent = "";
  find("answers").replaceChildren(
    make(
      "div",
      { class: "empty fault" },
      make("p", {}, isBusy ? "The server has too much to do." : "There is no answer."),
      make("p", { class: "hint" }, error.message),
      make("button", { type: "button", class: "quiet", click: ask }, "Try again"),
    ),
  );
}

function show(answer, milliseconds) {
  learn(answer.items);
  find("answered-by").textContent =
    `${answer.model} · version ${answer.model_version.slice(0, 8)} · ${milliseconds < 10 ? milliseconds.toFixed(1) : Math.round(milliseconds)} ms there and back`;
  const notes = [];
  if (answer.fallback) notes.push(REASONS[answer.fallback] ?? answer.fallback);
  else if (answer.unknown_items) {
    notes.push(`${answer.unknown_items} of ${state.history.length} items of the history ${answer.unknown_items === 1 ? "is" : "are"} unknown to the model.`);
  }
  if (answer.unknown_ids) notes.push(`Unknown ids in rules: ${answer.unknown_ids.join(", ")}.`);
  if (!state.about.explains && !answer.fallback) notes.push("This model cannot say which past item gave how much: bars show whole scores.");
  if (answer.items.length && answer.items.length < state.rules.n) notes.push(`The rules allow ${answer.items.length} items.`);
  find("note").textContent = notes.join(" ");
  if (!answer.items.length) {
    find("answers").replaceChildren(
      make("div", { class: "empty" }, make("p", {}, "Nothing is left to recommend."), make("p", { class: "hint" }, "Take a rule away, or ask for something else.")),
    );
    return;
  }
  const parts = answer.items.map(partsOf);
  const reach = Math.max(1e-12, ...parts.map((list) => sum(list, 1)));
  const below = Math.max(0, ...parts.map((list) => sum(list, -1)));
  const listed = new Set(answer.items.map(({ item_id }) => String(item_id)));
  open = new Set([...open].filter((id) => listed.has(id)));
  find("answers").replaceChildren(
    make("ol", { class: "list" }, ...answer.items.map((item, place) => row(item, place, parts[place], { reach, below }))),
  );
}

// What a score is made of: { name, share, tint } of each past item, of the base and of boosts.
function partsOf({ score, explanation }) {
  if (!explanation) return [{ name: "score", share: score, tint: "c0" }];
  // Shares are those of the known items, in the order of the history.
  let from = 0;
  const parts = explanation.shares.map(({ item_id, share }) => {
    const place = state.history.findIndex(({ id }, at) => at >= from && id === String(item_id));
    if (place >= 0) from = place + 1;
    return { name: title(item_id), share, tint: place >= 0 ? colour(place) : "c-base" };
  });
  if (explanation.base) parts.push({ name: "without the history", share: explanation.base, tint: "c-base" });
  if (explanation.boost) parts.push({ name: "boost", share: explanation.boost, tint: "c-boost" });
  return parts;
}

function sum(parts, sign) {
  return parts.reduce((total, { share }) => total + Math.max(0, share * sign), 0);
}

// Parts above 0 to the right, those below to the left of where 0 is.
export function bar(parts, { reach, below }) {
  const whole = reach + below;
  const side = (sign, limit) => {
    const made = make("span", { class: sign > 0 ? "above" : "below" });
    made.style.width = `${(100 * limit) / whole}%`;
    for (const { name, share, tint } of parts.filter((part) => part.share * sign > 0)) {
      const piece = make("span", { class: `piece ${tint}`, title: `${name}: ${share}` });
      piece.style.width = `${(100 * Math.abs(share)) / limit}%`;
      made.append(piece);
    }
    return made;
  };
  return make("span", { class: "bar" }, below > 0 ? side(-1, below) : null, side(1, reach));
}

function row(item, place, parts, scale) {
  const id = String(item.item_id);
  const name = item.title ?? id;
  const details = make("div", { class: "details", id: `details-${place}`, hidden: !open.has(id) });
  const toggle = make(
    "button",
    {
      type: "button", class: "answer", "aria-expanded": String(open.has(id)), "aria-controls": `details-${place}`,
      click: () => {
        if (!open.delete(id)) open.add(id);
        details.hidden = !open.has(id);
        toggle.setAttribute("aria-expanded", String(open.has(id)));
      },
    },
    make("span", { class: "rank" }, String(place + 1)),
    make("span", { class: "name" }, name, name.toLowerCase() === id.toLowerCase() ? null : make("span", { class: "hint" }, ` ${id}`)),
    make("span", { class: "score" }, rounded(item.score)),
    bar(parts, scale),
  );
  const act = (text, label, work) => make("button", { type: "button", class: "quiet", "aria-label": label, click: work }, text);
  details.append(
    item.explanation && parts.length ? shares(parts, item.score) : make("p", { class: "hint" }, `Score ${item.score}`),
    make(
      "div",
      { class: "chips" },
      act("Similar items", `Items similar to ${name}`, () => walkTo(id)),
      act("Boost", `Boost ${name}`, () => rule("boost", id)),
      act("Leave out", `Leave ${name} out`, () => rule("exclude", id)),
    ),
  );
  const take = make(
    "button",
    { type: "button", class: "icon take", "aria-label": `Add ${name} to the history`, title: "Add to the history", click: () => add(id) },
    "+",
  );
  return make("li", { "data-item": id }, make("div", { class: "line" }, toggle, take), details);
}

// The exact shares, as the server gave them.
function shares(parts, score) {
  const whole = parts.reduce((total, { share }) => total + Math.abs(share), 0);
  const line = ({ name, share, tint }) =>
    make(
      "tr",
      {},
      make("td", {}, make("span", { class: `swatch ${tint}` }), ` ${name}`),
      make("td", { class: "number code" }, String(share)),
      make("td", { class: "number" }, whole ? `${((100 * Math.abs(share)) / whole).toFixed(1)} %` : "–"),
    );
  return make(
    "table",
    { class: "shares" },
    make("thead", {}, make("tr", {}, make("th", {}, "What gave it"), make("th", { class: "number" }, "Share"), make("th", { class: "number" }, "Part"))),
    make("tbody", {}, ...parts.map(line)),
    make("tfoot", {}, make("tr", {}, make("th", {}, "Score"), make("td", { class: "number code" }, String(score)), make("td", {}))),
  );
}
