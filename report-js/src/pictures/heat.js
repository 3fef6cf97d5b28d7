// Correlations between the members of a group.

import { canvas } from "../axes.js";
import { int8 } from "../data.js";
import { h, s } from "../dom.js";
import { clipped, fixed, num } from "../format.js";
import { fitted, widest } from "../labels.js";

// Font weight of the first name, and the smallest cell for which the names leave room.
const BOLD = 650;
const SMALL = 15;

export function heatMap(page, g, width) {
  const { data, groups } = page;
  const heat = data.heat;
  const at = heat ? heat.group.indexOf(g) : -1;
  if (groups.size[g] === 1)
    return h(
      "p",
      { class: "quiet" },
      "The group has one member: no other feature reaches the correlation threshold.",
    );
  if (!heat)
    return h(
      "p",
      { class: "quiet" },
      "Not stored. The table below has the correlations with the support feature.",
    );
  if (at < 0)
    return h(
      "p",
      { class: "quiet" },
      `Correlations between members are stored for the first ${num(heat.group.length)} groups; ` +
        "those with the support feature stand in the table below.",
    );
  const all = heat.members[at].map((member) => page.memberName(member));
  const frame = Math.min(width, 520);
  const most = Math.max(110, 0.34 * frame, Math.min(0.72 * frame, frame - SMALL * all.length));
  const gutter = 8 + widest(all, 40, most - 8, BOLD);
  // On narrow screens, only as many members as stay readable: the first rows of the triangle.
  const room = Math.max(8, Math.floor((frame - gutter) / 11));
  const names = all.slice(0, room);
  const n = names.length;
  const matrix = int8(heat.hundredths[at]).subarray(0, (n * (n - 1)) / 2);
  const size = Math.max(7, Math.min(30, Math.floor((frame - gutter) / n)));
  const height = n * size + 26;
  const svg = canvas(
    gutter + n * size,
    height,
    `Correlations between ${n} members of the group of ${clipped(names[0], 60)}: ` +
      `from ${fixed(Math.min(...matrix) / 100)} to 1.`,
  );
  svg.classList.add("fixed");
  let k = 0;
  for (let i = 0; i < n; i++) {
    svg.append(
      s(
        "text",
        { class: `tick end ${i === 0 ? "strong" : ""}`, x: gutter - 6, y: i * size + size / 2 + 4 },
        fitted(names[i], gutter - 8, i ? 400 : BOLD),
        s("title", {}, clipped(names[i])),
      ),
    );
    for (let j = 0; j <= i; j++) {
      const value = i === j ? 1 : matrix[k++] / 100;
      const title =
        i === j
          ? clipped(names[i], 80)
          : `${clipped(names[i], 80)} and ${clipped(names[j], 80)}: ${fixed(value)}`;
      svg.append(
        s(
          "rect",
          {
            class: value < 0 ? "cell less" : "cell more",
            x: gutter + j * size,
            y: i * size,
            width: size - 1,
            height: size - 1,
            "fill-opacity": Math.abs(value).toFixed(2),
          },
          s("title", {}, title),
        ),
      );
      if (n <= 10 && size >= 24)
        svg.append(
          s(
            "text",
            {
              class: `cell-text middle ${Math.abs(value) > 0.6 ? "on" : ""}`,
              x: gutter + j * size + size / 2 - 0.5,
              y: i * size + size / 2 + 4,
              "aria-hidden": "true",
            },
            fixed(value).replace(/^(\u2212?)0\./, "$1."),
          ),
        );
    }
  }
  const bar = Math.min(120, n * size);
  const signs = matrix.some((value) => value < 0)
    ? [
        ["less", "\u22121"],
        ["more", "+1"],
      ]
    : [["more", "1"]];
  for (let i = 0; i <= 20; i++) {
    const value = signs.length === 2 ? i / 10 - 1 : i / 20;
    svg.append(
      s("rect", {
        class: value < 0 ? "cell less" : "cell more",
        x: gutter + (i * bar) / 21,
        y: n * size + 8,
        width: bar / 21,
        height: 8,
        "fill-opacity": Math.abs(value).toFixed(2),
      }),
    );
  }
  svg.append(
    s(
      "text",
      { class: "tick end", x: gutter - 6, y: n * size + 16 },
      signs.length === 2 ? "\u22121" : "0",
    ),
  );
  svg.append(s("text", { class: "tick", x: gutter + bar + 6, y: n * size + 16 }, "1"));
  const more = groups.size[g] - n;
  return [
    svg,
    more > 0
      ? h(
          "p",
          { class: "quiet" },
          `The ${n} members closest to the support feature. The table has ${num(more)} more.`,
        )
      : null,
  ];
}
