// A plane with axes, shared by all figures.

import { scaleLinear, scaleLog } from "d3-scale";
import { s } from "./dom.js";
import { num } from "./format.js";

export const linear = scaleLinear;
export const logarithmic = scaleLog;

export function canvas(width, height, label) {
  return s("svg", {
    viewBox: `0 0 ${width} ${height}`,
    width,
    height,
    role: "img",
    "aria-label": label,
  });
}

// Axes along the bottom and the left of a plane; `ticks` may be given as values, `format` as a
// function.
export function axes(
  svg,
  { x, y, box, xLabel, yLabel, xTicks, yTicks, xFormat, yFormat, grid = true },
) {
  const [left, right, top, bottom] = [box.left, box.right, box.top, box.bottom];
  const group = s("g", { class: "axes", "aria-hidden": "true" });
  yTicks ??= y?.ticks?.(5) ?? [];
  xTicks ??= x.ticks?.(Math.max(2, Math.round((right - left) / 80))) ?? [];
  yFormat ??= distinct(yTicks);
  xFormat ??= distinct(xTicks);
  for (const tick of yTicks) {
    const at = y(tick);
    if (grid) group.append(s("line", { class: "grid", x1: left, x2: right, y1: at, y2: at }));
    group.append(s("text", { class: "tick end", x: left - 7, y: at + 4 }, yFormat(tick)));
  }
  for (const tick of xTicks) {
    const at = x(tick);
    group.append(s("line", { class: "mark", x1: at, x2: at, y1: bottom, y2: bottom + 4 }));
    group.append(s("text", { class: "tick middle", x: at, y: bottom + 17 }, xFormat(tick)));
  }
  group.append(s("line", { class: "base", x1: left, x2: right, y1: bottom, y2: bottom }));
  if (xLabel)
    group.append(
      s("text", { class: "axis-label middle", x: (left + right) / 2, y: bottom + 36 }, xLabel),
    );
  if (yLabel)
    group.append(
      s("text", { class: "axis-label", x: Math.max(2, left - 40), y: top - 12 }, yLabel),
    );
  svg.append(group);
  return group;
}

// A formatter with as many digits as tell the ticks apart.
export function distinct(ticks) {
  for (let digits = 3; digits < 15; digits++) {
    const words = ticks.map((tick) => num(tick, digits));
    if (new Set(words).size === new Set(ticks).size) return (tick) => num(tick, digits);
  }
  return String;
}

// Circles as one path, so that ten thousand circles are one node.
export function discs(points) {
  return points
    .map(([x, y, r]) => `M${(x - r).toFixed(1)},${y.toFixed(1)}${arc(r, 2 * r)}${arc(r, -2 * r)}`)
    .join("");
}

export function boxOf(width, height, margin) {
  return {
    left: margin.left,
    right: width - margin.right,
    top: margin.top,
    bottom: height - margin.bottom,
  };
}

function arc(r, dx) {
  return `a${r.toFixed(1)},${r.toFixed(1)} 0 1,0 ${dx.toFixed(1)},0`;
}
