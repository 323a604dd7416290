// Asks the server that this page comes from.

import { find } from "./elements.js";

export class Refused extends Error {
  constructor(status, code, message) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

// Whole numbers that are too large for a number of this language stay as they were written: they are ids.
function exact(_key, value, context) {
  const isLarge = typeof value === "number" && Number.isInteger(value) && !Number.isSafeInteger(value);
  return isLarge && context && /^-?\d+$/.test(context.source) ? context.source : value;
}

export async function call(path, { body, signal } = {}) {
  const headers = {};
  const key = find("key").value;
  if (key) headers.authorization = `Bearer ${key}`;
  if (body) headers["content-type"] = "application/json";
  let response;
  try {
    response = await fetch(path, { method: body ? "POST" : "GET", headers, body: body && JSON.stringify(body), signal });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refused(0, "unreachable", "The server does not answer. Is it still running?");
  }
  const text = await response.text();
  let answer;
  try {
    answer = JSON.parse(text, exact);
  } catch {
    throw new Refused(response.status, "strange", `The answer is not JSON (status ${response.status}).`);
  }
  if (!response.ok) throw new Refused(response.status, answer.error?.code, answer.error?.message ?? `Status ${response.status}`);
  return answer;
}

export function query(path, given) {
  const pairs = Object.entries(given).filter(([, value]) => value !== undefined && value !== "");
  return pairs.length ? `${path}?${new URLSearchParams(pairs)}` : path;
}

// Of several calls that follow each other only the last counts: those before are given up.
export function latest() {
  let running;
  return async (work) => {
    running?.abort();
    const own = new AbortController();
    running = own;
    try {
      return await work(own.signal);
    } catch (error) {
      if (own.signal.aborted) return undefined;
      throw error;
    }
  };
}
