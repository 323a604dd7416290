// What the page is about: a model, a history, rules. Whoever shows a part of it is told when it changes.

import { call, query } from "./api.js";

export const state = {
  // The name of a model, or "" for the server's choice.
  model: "",
  // What /v1/model says of it.
  about: undefined,
  // Steps, oldest first: { id, joined }, where `joined` means taken together with the one before.
  history: [],
  rules: { n: 10, where: "", again: false, items: [] },
};

const listeners = [];

export function onChange(listener) {
  listeners.push(listener);
}

// `what` is "model", "history" or "rules".
export function changed(what) {
  remember();
  for (const listener of listeners) listener(what);
}

// What people call items, by id.
const titles = new Map();

export function learn(items) {
  for (const item of items) if (item.title) titles.set(String(item.item_id), item.title);
}

export const title = (id) => titles.get(String(id)) ?? String(id);

export function add(id) {
  state.history.push({ id: String(id), joined: false });
  changed("history");
}

export function remove(place) {
  state.history.splice(place, 1);
  if (state.history.length) state.history[0].joined = false;
  changed("history");
}

export function move(place, by) {
  const to = place + by;
  if (to < 0 || to >= state.history.length) return place;
  const [step] = state.history.splice(place, 1);
  state.history.splice(to, 0, step);
  state.history[0].joined = false;
  changed("history");
  return to;
}

// The history as requests have it: ids, and lists of ids taken together.
export function steps() {
  const made = [];
  for (const { id, joined } of state.history) {
    if (joined && made.length) made.push([made.pop(), id].flat());
    else made.push(id);
  }
  return made;
}

// A rule about an item: { kind: "boost", "exclude" or "only", id, factor }.
export function rule(kind, id) {
  const others = state.rules.items.filter((other) => other.id !== String(id));
  state.rules.items = [...others, { kind, id: String(id), factor: 2 }];
  changed("rules");
}

// The address of the page holds what is asked, so that it can be kept and passed on.
function remember() {
  const kept = new URLSearchParams();
  if (state.model) kept.append("model", state.model);
  for (const { id, joined } of state.history) kept.append(joined ? "with" : "item", id);
  if (state.rules.where) kept.append("where", state.rules.where);
  const text = kept.toString();
  window.history.replaceState(null, "", text ? `#${text}` : window.location.pathname);
}

export function recall() {
  for (const [name, value] of new URLSearchParams(window.location.hash.slice(1))) {
    if (name === "model") state.model = value;
    if (name === "where") state.rules.where = value;
    if (name === "item" || name === "with") {
      state.history.push({ id: value, joined: name === "with" && state.history.length > 0 });
    }
  }
}

// Titles of a history that came with the address.
export async function learnHistory() {
  const ids = [...new Set(state.history.map(({ id }) => id))].filter((id) => !titles.has(id)).slice(0, 50);
  const found = await Promise.allSettled(
    ids.map((id) => call(query(`/v1/items/${encodeURIComponent(id)}`, { model: state.model }))),
  );
  learn(found.filter(({ status }) => status === "fulfilled").map(({ value }) => value));
}
