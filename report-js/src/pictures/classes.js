// Several classes or targets: sign and size of the effect of each group on each of them.

import { max } from "d3-array";
import { canvas } from "../axes.js";
import { figure, s } from "../dom.js";
import { clipped, num, short, signedNum } from "../format.js";

const MOST = 40;

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
    wide: !(data.image && names.length <= 12),
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
    const gutter = Math.min(190, Math.max(96, width * 0.3));
    const narrow = width < 600; // steeper labels, so that they do not overlap
    const letters = narrow ? 18 : 22;
    const longest = Math.max(...names.map((name) => short(name, letters).length));
    const upright = longest <= 3;
    const angle = upright ? 0 : narrow ? -70 : -40;
    const top = upright ? 22 : Math.min(150, 16 + longest * (narrow ? 6.9 : 4.6));
    const cell = Math.min(64, (width - gutter - (upright ? 4 : narrow ? 30 : 60)) / names.length);
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
          short(name, letters),
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
          short(groups.label[g], Math.floor(gutter / 6.8)),
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
