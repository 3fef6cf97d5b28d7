// Formatting, drawing and sorting of column values by kind. The columns themselves come with the
// data, from coterie/groups/columns.py; nothing here depends on the name of a column.

import { max } from "d3-array";
import { h } from "./dom.js";
import { clipped, fixed, num, signed, signedNum, visible } from "./format.js";

const NUMERIC = new Set(["count", "figure", "effect", "share", "correlation"]);
const WRITERS = {
  text: (value) => clipped(value, 80),
  name: (value) => clipped(value),
  count: (value) => num(value),
  figure: (value) => num(value, 2),
  share: (value) => fixed(value),
  correlation: (value) => signed(value),
};

// Return a formatter of the column's values. Effects have the decimals that the largest one needs.
export function writer(column, values) {
  const write =
    column.kind === "effect"
      ? effectWriter(largestOf(values))
      : (WRITERS[column.kind] ?? WRITERS.text);
  return (value) => (value === null || value === undefined ? column.missing : write(value));
}

export function headline(column) {
  return column.title[0].toUpperCase() + column.title.slice(1);
}

// A column of the table of groups: values, sort order and cells.
export function tableColumn(column, values, order) {
  const numeric = NUMERIC.has(column.kind);
  const write = writer(column, values);
  const draw = { effect: effectCell, share: shareCell }[column.kind] ?? textCell;
  const largest = largestOf(values);
  const signs = column.kind === "effect" && values.some((value) => value < 0);
  return {
    key: column.key,
    title: headline(column),
    hint:
      column.kind === "effect"
        ? `${column.hint} Sorted by absolute value.`
        : column.hint || undefined,
    numeric,
    className: `kind-${column.kind} key-${column.key}`,
    width:
      column.kind === "text"
        ? `${Math.min(17, 2.2 + 0.47 * max(values, (words) => String(words ?? "").length))}rem`
        : undefined,
    value: (g) => order?.[g] ?? sortValue(column.kind, values[g]),
    show: (g) =>
      values[g] === null ? column.missing : draw(values[g], write(values[g]), { largest, signs }),
  };
}

export function memberCell(column, values, m) {
  return h(
    "td",
    { class: NUMERIC.has(column.kind) ? "n" : undefined },
    writer(column, [])(values[m]),
  );
}

export function memberHead(column) {
  return h(
    "th",
    {
      scope: "col",
      class: NUMERIC.has(column.kind) ? "n" : undefined,
      title: column.hint || undefined,
    },
    headline(column),
  );
}

function largestOf(values) {
  return max(values, Math.abs) || 1;
}

function sortValue(kind, value) {
  if (value === null) return null;
  if (kind === "effect") return Math.abs(value);
  return NUMERIC.has(kind) ? value : visible(value);
}

function effectWriter(largest) {
  const places =
    largest >= 100 || largest < 1e-4
      ? null
      : Math.max(1, 2 - Math.floor(Math.log10(largest * 1.005)));
  return (value) => (places === null ? signedNum(value) : signed(value, places));
}

function textCell(value, words) {
  return typeof value === "string" ? h("bdi", { title: clipped(value) }, words) : words;
}

function effectCell(value, words, { largest, signs }) {
  const share = Math.abs(value) / largest;
  const style = signs
    ? { width: `${50 * share}%`, left: value < 0 ? `${50 - 50 * share}%` : "50%" }
    : { width: `${100 * share}%`, left: "0" };
  const bar = h("span", { class: `effect-fill ${value < 0 ? "less" : "more"}`, style });
  return [
    h("span", { class: `effect-track ${signs ? "two-sided" : ""}`, "aria-hidden": "true" }, bar),
    h("span", { class: "figure-text" }, words),
  ];
}

function shareCell(value, words) {
  const bar = h("span", { class: "bar-fill", style: { width: `${100 * value}%` } });
  return [
    h("span", { class: "bar-track", "aria-hidden": "true" }, bar),
    h("span", { class: "figure-text" }, words),
  ];
}
