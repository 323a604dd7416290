// Elements, and numbers as people read them.

const SVG = "http://www.w3.org/2000/svg";

function fill(made, properties, children) {
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (typeof value === "function") made.addEventListener(name, value);
    else made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.flat().filter((child) => child !== undefined && child !== null && child !== false));
  return made;
}

// An element; a property that is a function listens to the event of that name.
export function make(name, properties = {}, ...children) {
  return fill(document.createElement(name), properties, children);
}

export function draw(name, properties = {}, ...children) {
  return fill(document.createElementNS(SVG, name), properties, children);
}

export const find = (id) => document.getElementById(id);

const shown = new Intl.NumberFormat("en", { maximumSignificantDigits: 4 });

// A number for the eye; what is exact is shown as it came.
export function rounded(number) {
  if (number === 0) return "0";
  return Math.abs(number) < 1e-3 || Math.abs(number) >= 1e7 ? number.toExponential(2) : shown.format(number);
}

export const counted = (number) => Math.round(number).toLocaleString("en");

export function bytes(number) {
  if (number === null || number === undefined) return "–";
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let at = 0;
  while (number >= 1024 && at + 1 < units.length) {
    number /= 1024;
    at += 1;
  }
  return `${number < 10 && at ? number.toFixed(1) : Math.round(number)} ${units[at]}`;
}

// The colour of the item at a place of the history.
export const colour = (place) => `c${place % 8}`;

// Runs at most once while calls follow each other quickly.
export function settled(work, milliseconds) {
  let timer;
  return (...given) => {
    clearTimeout(timer);
    timer = setTimeout(() => work(...given), milliseconds);
  };
}
