// Several classes or targets: sign and size of the effect of each group on each of them.

import { max } from "d3-array";
import { canvas } from "../axes.js";
import { figure, s } from "../dom.js";
import { clipped, num, signedNum } from "../format.js";
import { fitted, widest, widthOf } from "../labels.js";

const MOST = 40;
// Number of classes up to which the figure is half as wide as the page.
const FEW = 5;

export function classesPicture(page) {
  const { data, groups } = page;
  const { targets, class_effects: effects } = data;
  const names = targets ?? data.classes;
  const shown = Math.min(MOST, groups.n, effects.length);
  let marker = null;
  let size = 20;
  const some = shown < groups.n ? `, for the first ${shown} of ${num(groups.n)} groups` : "";
  const picture = figure({
    title: targets ? "Effects by target" : "Effects by class",
    wide: names.length > (data.image ? 12 : FEW),
    className: "classes",
    draw,
    caption: targets
      ? "Blue: the target increases with the feature. Orange: it decreases. Colour: effect " +
        `relative to the variation of the target, per standard deviation of the feature${some}.`
      : "Blue: higher values of the feature favour the class. Orange: they oppose it. " +
        `Colour: log-odds of the class per standard deviation${some}.`,
  });
  page.onSelect(mark);
  return picture;

  function draw(width) {
    const rows = groups.label.slice(0, shown);
    const most = Math.max(96, Math.min(320, 0.6 * width, width - 24 * names.length - 60));
    const gutter = 10 + widest(rows, 40, most - 10);
    const cells = Math.min(64, (width - gutter - 4) / names.length);
    const upright = Math.max(...names.map((name) => widthOf(clipped(name)))) <= cells - 6;
    const narrow = width < 400 || cells < 30; // steeper labels, so that they do not overlap
    const angle = upright ? 0 : narrow ? -70 : -40;
    const [across, up] = [Math.cos, Math.sin].map((f) => f((Math.abs(angle) * Math.PI) / 180));
    const long = widest(names, 20, upright ? 400 : 150);
    const top = upright ? 22 : 16 + long * up;
    // The last label may need more room than its column.
    const room = upright ? 4 : Math.min(0.3 * width, Math.max(4, long * across));
    const cell = Math.min(64, (width - gutter - room) / names.length);
    size = Math.max(16, Math.min(24, cell));
    const height = top + shown * size + 4;
    const large = max(effects.slice(0, shown), (row) => max(row, Math.abs)) || 1;
    const svg = canvas(
      width,
      height,
      `Effects of ${shown} groups on ${names.length} ${targets ? "targets" : "classes"}.`,
    );
    marker = s("rect", {
      class: "row-mark",
      x: 0,
      y: -100,
      width: gutter + cell * names.length,
      height: size,
    });
    svg.append(marker);
    names.forEach((name, c) => {
      const x = gutter + cell * (c + 0.5);
      svg.append(
        s(
          "text",
          {
            class: upright ? "tick middle" : "tick",
            x: 0,
            y: 0,
            transform: `translate(${x.toFixed(1)},${top - 8})${angle ? ` rotate(${angle})` : ""}`,
          },
          fitted(name, upright ? cell : long),
          s("title", {}, clipped(name)),
        ),
      );
    });
    for (let g = 0; g < shown; g++) {
      const y = top + g * size;
      svg.append(
        s(
          "text",
          { class: "tick end", x: gutter - 8, y: y + size / 2 + 4 },
          fitted(groups.label[g], gutter - 10),
          s("title", {}, clipped(groups.label[g])),
        ),
      );
      names.forEach((name, c) => {
        const value = effects[g][c];
        svg.append(
          s(
            "rect",
            {
              class: `cell ${value < 0 ? "less" : "more"}`,
              x: gutter + cell * c,
              y,
              width: Math.max(1, cell - 1),
              height: size - 1,
              "fill-opacity": Math.sqrt(Math.abs(value) / large).toFixed(2),
            },
            s(
              "title",
              {},
              `${clipped(groups.label[g], 80)}, ${clipped(name, 80)}: ${signedNum(value)}`,
            ),
          ),
        );
      });
    }
    svg.addEventListener("pointermove", (event) => {
      const frame = svg.getBoundingClientRect();
      const g = Math.floor((((event.clientY - frame.top) / frame.height) * height - top) / size);
      if (g >= 0 && g < shown) page.select(g);
    });
    mark.top = top;
    mark();
    return svg;
  }

  function mark() {
    if (!marker) return;
    const inside = page.selected !== null && page.selected < shown;
    marker.setAttribute("y", inside ? mark.top + page.selected * size - 0.5 : -100);
  }
}
