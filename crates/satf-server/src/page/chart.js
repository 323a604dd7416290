// Lines over time or age, drawn as wide as there is room.

import { draw, make, rounded } from "./elements.js";

const HEIGHT = 190;
const EDGE = { top: 12, right: 12, bottom: 26, left: 46 };

// Round numbers from 0 up to at least `most`.
function ticks(most) {
  const raw = (most > 0 ? most : 1) / 4;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].map((factor) => factor * power).find((value) => value >= raw * 0.999) ?? raw;
  const made = [0];
  while (made.at(-1) < most * 0.999 || made.length < 2) made.push(made.length * step);
  return made;
}

// A chart that can be shown again with other values. `describe` says in words what it shows.
export function chart(label) {
  const root = make("div", { class: "chart" });
  let shown;
  // { series: [{ name, tint, values, filled, dots, dashed }], labels: [[place, text]], unit }
  function show(given) {
    shown = given ?? shown;
    if (!shown) return;
    const width = Math.max(240, root.clientWidth || 480);
    const { series, labels, unit = "" } = shown;
    const length = Math.max(2, ...series.map(({ values }) => values.length));
    const marks = ticks(Math.max(0, ...series.flatMap(({ values }) => values.filter((value) => value !== null))));
    const top = marks.at(-1);
    const x = (place) => EDGE.left + ((width - EDGE.left - EDGE.right) * place) / (length - 1);
    const y = (value) => HEIGHT - EDGE.bottom - ((HEIGHT - EDGE.top - EDGE.bottom) * value) / top;
    const grid = marks.flatMap((mark) => [
      draw("line", { class: "grid", x1: EDGE.left, x2: width - EDGE.right, y1: y(mark), y2: y(mark) }),
      draw("text", { x: EDGE.left - 8, y: y(mark) + 4, "text-anchor": "end" }, rounded(mark)),
    ]);
    const below = labels.map(([place, text], at) =>
      draw("text", { x: x(place), y: HEIGHT - 6, "text-anchor": at === 0 ? "start" : at === labels.length - 1 ? "end" : "middle" }, text),
    );
    const lines = series.flatMap((one) => line(one, x, y));
    const svg = draw("svg", { width, height: HEIGHT, viewBox: `0 0 ${width} ${HEIGHT}`, role: "img", "aria-label": `${label}. ${shown.words ?? ""}` }, ...grid, ...below, ...lines);
    const legend = make(
      "p",
      { class: "legend" },
      ...series.filter(({ name }) => name).map(({ name, tint }) => make("span", {}, make("span", { class: `swatch ${tint}` }), ` ${name}`)),
      unit ? make("span", { class: "hint" }, unit) : null,
    );
    root.replaceChildren(legend, svg);
  }
  new ResizeObserver(() => {
    if (root.clientWidth && root.querySelector("svg")?.getAttribute("width") !== String(Math.max(240, root.clientWidth))) show();
  }).observe(root);
  return { root, show };
}

// A line breaks where there is no value.
function line({ values, tint, filled, dots }, x, y) {
  const runs = [];
  values.forEach((value, place) => {
    if (value === null) return;
    if (place === 0 || values[place - 1] === null) runs.push([]);
    runs.at(-1).push([x(place), y(value)]);
  });
  const made = [];
  for (const run of runs) {
    const points = run.map(([left, up]) => `${left.toFixed(1)},${up.toFixed(1)}`).join(" ");
    if (filled) made.push(draw("polygon", { class: `area ${tint}`, points: `${run[0][0]},${y(0)} ${points} ${run.at(-1)[0]},${y(0)}` }));
    if (run.length > 1) made.push(draw("polyline", { class: `stroke ${tint}`, points }));
    else made.push(draw("circle", { class: `dot ${tint}`, cx: run[0][0], cy: run[0][1], r: 2 }));
  }
  for (const [place, mark, name] of dots ?? []) {
    made.push(draw("circle", { class: `dot ${mark}`, cx: x(place), cy: y(values[place]), r: 5 }, draw("title", {}, name)));
  }
  return made;
}
