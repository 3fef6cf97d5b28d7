// Formatting of numbers and names.

const MINUS = "\u2212";

export function num(value, digits = 3) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  if (value === 0) return "0";
  const size = Math.abs(value);
  let text;
  if (Number.isInteger(value) && size < 1e15) text = value.toLocaleString("en-US");
  else if (size >= 1e6 || size < 1e-3)
    text = value
      .toExponential(Math.max(1, digits - 2))
      .replace("e+", "e")
      .replace("e-", `e${MINUS}`);
  else if (size >= 1000)
    text = value.toLocaleString("en-US", { maximumFractionDigits: Math.max(0, digits - 4) });
  else text = String(Number(value.toPrecision(digits)));
  return text.replace(/^-/, MINUS);
}

export function fixed(value, digits = 2) {
  return value === null || value === undefined || Number.isNaN(value)
    ? "–"
    : value.toFixed(digits).replace(/^-/, MINUS);
}

export function signed(value, digits = 2) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  return (value > 0 ? "+" : "") + fixed(value, digits);
}

export function signedNum(value) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  return (value > 0 ? "+" : "") + num(value);
}

export function count(value, word, words = `${word}s`) {
  return `${num(value)} ${value === 1 ? word : words}`;
}

// Control characters, direction marks and surrogates are shown as escapes, so that no text is
// hidden.
const CONTROLS = /[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]/;
const HALVES = /[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/;
const HIDDEN = new RegExp(`${CONTROLS.source}|${HALVES.source}`, "g");

export function visible(name) {
  return String(name).replace(HIDDEN, (c) =>
    c === "\n" ? "\u23ce" : `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

export function short(name, most = 24) {
  const letters = Array.from(visible(name).slice(0, 4 * most));
  return letters.length > most
    ? `${letters
        .slice(0, most - 1)
        .join("")
        .trimEnd()}…`
    : letters.join("");
}

// A name for a tooltip or a member's row, truncated only if it is very long.
export function clipped(name, most = 300) {
  const text = visible(name);
  return text.length > most ? `${text.slice(0, most)}… (${num(text.length)} characters)` : text;
}
