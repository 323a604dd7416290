// How much the server has to do, from its own figures, second by second.

import { call } from "./api.js";
import { chart } from "./chart.js";
import { bytes, counted, find, make, rounded } from "./elements.js";

const SECONDS = 120;
const TILES = [
  ["Requests / s", ({ last }) => counted(last.requests)],
  ["p50", ({ last }) => milliseconds(last.p50_ms)],
  ["p99", ({ last }) => milliseconds(last.p99_ms)],
  ["Under way", ({ in_flight }) => counted(in_flight)],
  ["Waiting", ({ queue }) => counted(queue)],
  ["Refused", ({ seconds }) => counted(seconds.reduce((sum, { rejected }) => sum + rejected, 0))],
  ["Sessions", ({ sessions }) => counted(sessions)],
  ["Memory", ({ memory_bytes }) => bytes(memory_bytes)],
];

const requests = chart("Requests per second over the last two minutes");
const latency = chart("Latency in milliseconds over the last two minutes");
let timer;
let isPaused = false;

const milliseconds = (value) => (value === null || value === undefined ? "–" : `${value < 100 ? value.toPrecision(2) : counted(value)} ms`);

export function startLoad() {
  const tiles = make("dl", { class: "tiles" }, ...TILES.map(([name]) => make("div", {}, make("dt", {}, name), make("dd", {}, "–"))));
  const pause = make(
    "button",
    {
      id: "pause", type: "button", class: "quiet", "aria-pressed": "false",
      click: () => {
        isPaused = !isPaused;
        pause.setAttribute("aria-pressed", String(isPaused));
        pause.textContent = isPaused ? "Go on" : "Pause";
        if (!isPaused) tick();
      },
    },
    "Pause",
  );
  find("load").replaceChildren(
    tiles,
    make("div", { class: "two charts" }, requests.root, latency.root),
    make("div", { class: "foot" }, pause, make("div", { class: "scroll", id: "by-model" })),
  );
  document.addEventListener("visibilitychange", () => tick());
  tick();
}

// Looks every second while somebody sees it.
async function tick() {
  clearTimeout(timer);
  if (document.hidden || isPaused) return;
  try {
    show(await call("/v1/stats"));
    find("load-state").textContent = "";
  } catch (error) {
    find("load-state").textContent = error.message;
  }
  timer = setTimeout(tick, 1000);
}

function show(stats) {
  const last = stats.seconds.at(-1) ?? { requests: 0, p50_ms: null, p99_ms: null };
  const values = find("load").querySelectorAll("dd");
  TILES.forEach(([, of], place) => (values[place].textContent = of({ ...stats, last })));
  const empty = Array(Math.max(0, SECONDS - stats.seconds.length)).fill(null);
  const of = (name) => [...empty, ...stats.seconds.map((second) => second[name])];
  const labels = [[0, "2 min ago"], [SECONDS / 2, "1 min"], [SECONDS - 1, "now"]];
  const refused = of("rejected");
  const faults = stats.seconds.length ? [...empty, ...stats.seconds.map((second) => Math.max(0, second.server_errors - second.rejected))] : empty;
  requests.show({
    series: [
      { name: "answered", tint: "c0", values: of("requests"), filled: true },
      { name: "refused (503)", tint: "c1", values: refused },
      { name: "faults (other 5xx)", tint: "c4", values: faults },
    ],
    labels,
    unit: "per second",
    words: `Now ${counted(last.requests)} answered.`,
  });
  latency.show({
    series: [
      { name: "p50", tint: "c2", values: of("p50_ms") },
      { name: "p90", tint: "c3", values: of("p90_ms") },
      { name: "p99", tint: "c1", values: of("p99_ms") },
    ],
    labels,
    unit: "milliseconds, in the server",
    words: `Now p50 ${milliseconds(last.p50_ms)}, p99 ${milliseconds(last.p99_ms)}.`,
  });
  const line = ({ name, answers, unknown_items, fallbacks }) =>
    make("tr", {}, make("td", {}, name), ...[answers, unknown_items, fallbacks].map((count) => make("td", { class: "number" }, counted(count))));
  find("by-model").replaceChildren(
    make(
      "table",
      {},
      make("thead", {}, make("tr", {}, make("th", {}, "Model"), ...["Answers", "Unknown items", "Fallbacks"].map((name) => make("th", { class: "number" }, name)))),
      make("tbody", {}, ...stats.models.map(line)),
    ),
  );
}
