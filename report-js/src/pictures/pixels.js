// Positions of support features and their groups in an image whose pixels are the features.

import { canvas } from "../axes.js";
import { figure, h, s } from "../dom.js";
import { clipped, count } from "../format.js";

const GREYS = 16;

export function pixelPicture(page) {
  const { data, groups, members } = page;
  const { rows, columns, order, background } = data.image;
  const place = (feature) =>
    order === "F"
      ? [Math.floor(feature / rows), feature % rows]
      : [feature % columns, Math.floor(feature / columns)];
  const role = new Map();
  for (let g = 0; g < groups.n; g++)
    for (let m = members.start[g]; m < members.start[g + 1]; m++)
      if (!role.has(members.feature[m])) role.set(members.feature[m], [g, m === members.start[g]]);
  for (let g = 0; g < groups.n; g++) role.set(groups.support[g], [g, true]);
  let outline = null;
  let size = 1;
  const picture = figure({
    title: "Positions in the image",
    className: "pixels",
    draw,
    caption: [
      h("span", { class: "key" }, h("i", { class: "square less" }), " support feature"),
      " ",
      h("span", { class: "key" }, h("i", { class: "square more" }), " affiliated"),
      " ",
      h("span", { class: "key" }, h("i", { class: "square outlined" }), " the group chosen"),
      background ? "; grey: mean of the images." : ".",
    ],
  });
  page.onSelect(mark);
  return picture;

  function squares(features, inset = 0) {
    return features
      .map((feature) => {
        const [i, j] = place(feature);
        const edge = size - 2 * inset;
        const [x, y] = [(i * size + inset).toFixed(2), (j * size + inset).toFixed(2)];
        return `M${x},${y}h${edge.toFixed(2)}v${edge.toFixed(2)}h${(-edge).toFixed(2)}z`;
      })
      .join("");
  }

  function draw(width) {
    size = Math.min(Math.min(width, 420) / columns, 420 / rows);
    const svg = canvas(
      columns * size,
      rows * size,
      `${columns} by ${rows} pixels, ` +
        `${count(groups.n, "group")} with ${count(role.size, "pixel")}.`,
    );
    svg.classList.add("fixed");
    svg.append(
      s("rect", { class: "ground", x: 0, y: 0, width: columns * size, height: rows * size }),
    );
    if (background) {
      const layers = Array.from({ length: GREYS }, () => []);
      background.forEach((grey, feature) =>
        layers[Math.min(GREYS - 1, Math.floor((grey * GREYS) / 256))].push(feature),
      );
      layers.forEach(
        (features, i) =>
          features.length &&
          i &&
          svg.append(
            s("path", {
              class: "grey",
              d: squares(features),
              "fill-opacity": ((0.55 * i) / GREYS).toFixed(2),
            }),
          ),
      );
    }
    const inset = size > 6 ? 0.08 * size : 0;
    const of = (wanted) =>
      [...role].filter(([, [, support]]) => support === wanted).map(([feature]) => feature);
    svg.append(
      s("path", { class: "pixel more", d: squares(of(false), inset) }),
      s("path", { class: "pixel less", d: squares(of(true), inset) }),
    );
    outline = s("path", { class: "outline", d: "" });
    svg.append(outline);
    svg.addEventListener("pointermove", (event) => {
      const frame = svg.getBoundingClientRect();
      const [i, j] = [
        Math.floor(((event.clientX - frame.left) / frame.width) * columns),
        Math.floor(((event.clientY - frame.top) / frame.height) * rows),
      ];
      const found = role.get(order === "F" ? i * rows + j : j * columns + i);
      svg.classList.toggle("pointing", Boolean(found));
      if (found) page.select(found[0]);
    });
    mark();
    return svg;
  }

  function mark() {
    if (!outline || page.selected === null) return;
    const g = page.selected;
    outline.setAttribute(
      "d",
      squares(members.feature.slice(members.start[g], members.start[g + 1])),
    );
    outline.setAttribute("aria-label", clipped(groups.label[g], 60));
  }
}
