// Widths of names, so that they are cut only where there is no room.

import { clipped, visible } from "./format.js";

const SIZE = 12;
let pen = null;

export function widthOf(text, weight = 400) {
  pen ??= document.createElement("canvas").getContext("2d");
  pen.font = `${weight} ${SIZE}px ${getComputedStyle(document.body).fontFamily}`;
  return pen.measureText(text).width;
}

// The name, cut to a width in pixels.
export function fitted(name, room, weight = 400) {
  const whole = visible(String(name).slice(0, 400));
  if (widthOf(whole, weight) <= room) return whole;
  const letters = Array.from(whole);
  let [low, high] = [1, letters.length];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (widthOf(`${letters.slice(0, middle).join("")}…`, weight) <= room) low = middle;
    else high = middle - 1;
  }
  return `${letters.slice(0, low).join("").trimEnd()}…`;
}

// The width of the longest name, between two limits.
export function widest(names, least, most, weight = 400) {
  let found = least;
  for (const name of names) {
    if (found >= most) break;
    found = Math.max(found, widthOf(clipped(name), weight));
  }
  return Math.min(found, most);
}
