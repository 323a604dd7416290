// The console: puts its parts together and sees to the model.

import { startAnswers } from "./answers.js";
import { call, query } from "./api.js";
import { startCurve } from "./curve.js";
import { counted, find, make } from "./elements.js";
import { startHistory } from "./history.js";
import { startLoad } from "./load.js";
import { startRules } from "./rules.js";
import { changed, learnHistory, recall, state } from "./store.js";
import { startWalk } from "./walk.js";

function alert(error) {
  const box = find("alert");
  box.hidden = !error;
  if (!error) return;
  const again = make("button", { type: "button", class: "quiet", click: load }, "Try again");
  box.replaceChildren(error.message, again);
  if (error.status === 401 || error.status === 403) showKey(true);
}

function showKey(isShown) {
  find("key-form").hidden = !isShown;
  find("key-open").setAttribute("aria-expanded", String(isShown));
  if (isShown) find("key").focus();
}

async function load() {
  try {
    const { models, default_model } = await call("/v1/models");
    const names = models.map(({ name }) => name);
    if (!names.includes(state.model)) state.model = "";
    const isSplit = models.some(({ share }) => share !== null);
    const options = models.map(({ name, kind, items }) => make("option", { value: name }, `${name} (${kind}, ${counted(items)} items)`));
    const own = isSplit ? "as the split decides" : `default (${default_model})`;
    find("model").replaceChildren(make("option", { value: "" }, own), ...options);
    find("model").value = state.model;
    await choose();
    alert();
  } catch (error) {
    alert(error);
  }
}

async function choose() {
  state.about = await call(query("/v1/model", { model: state.model }));
  await learnHistory();
  changed("model");
  changed("history");
  changed("rules");
}

find("model").addEventListener("change", () => {
  state.model = find("model").value;
  choose().then(() => alert(), alert);
});
find("key-open").addEventListener("click", () => showKey(find("key-form").hidden));
find("key-form").addEventListener("submit", (event) => {
  event.preventDefault();
  showKey(false);
  load();
});

recall();
startHistory();
startRules();
startAnswers();
startWalk();
startCurve();
startLoad();
load();
