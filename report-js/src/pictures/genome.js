// Positions of the groups: chromosomes side by side, a disc for each support feature, a line over
// its members.

import { max } from "d3-array";
import { quadtree } from "d3-quadtree";
import { axes, boxOf, canvas, discs, linear } from "../axes.js";
import { figure, s } from "../dom.js";
import { fixed, num, short } from "../format.js";

export function genomePicture(page) {
  const { data, groups } = page;
  const { genome } = data;
  const known = groups.confidence.some((value) => value !== null);
  const place = page.annotationsOf("chromosome", "position");
  const starts = new Map();
  let total = 0;
  for (const part of genome) {
    starts.set(part.chromosome, total - part.low);
    total += Math.max(1, part.high - part.low) * 1.0;
    total += 0.004 * genome.reduce((sum, p) => sum + p.high - p.low, 0);
  }
  let ring = null;
  let spotOf = () => null;
  const picture = figure({
    title: "Positions on the genome",
    caption:
      `Discs: support features by position and ${known ? "confidence" : "effect"}; ` +
      "lines reach over the members of the group on the same chromosome.",
    wide: true,
    className: "genome",
    draw,
  });
  page.onSelect(mark);
  return picture;

  function draw(width) {
    const height = 250;
    const box = boxOf(width, height, { left: 46, right: 14, top: 30, bottom: 44 });
    const x = linear().domain([0, total]).range([box.left, box.right]);
    const large = max(groups.effect, Math.abs) || 1;
    const y = linear()
      .domain([0, known ? 1 : large])
      .nice()
      .range([box.bottom, box.top + 8]);
    const height_ = (g) => (known ? groups.confidence[g] : Math.abs(groups.effect[g] ?? 0));
    const svg = canvas(width, height, `Groups on ${num(genome.length)} chromosomes.`);
    genome.forEach((part, i) => {
      const [from, to] = [
        x(starts.get(part.chromosome) + part.low),
        x(starts.get(part.chromosome) + part.high),
      ];
      if (i % 2)
        svg.append(
          s("rect", {
            class: "stripe",
            x: from,
            y: box.top,
            width: to - from,
            height: box.bottom - box.top,
          }),
        );
      if (to - from > 7 * String(part.chromosome).length)
        svg.append(
          s(
            "text",
            { class: "tick middle", x: (from + to) / 2, y: box.bottom + 17 },
            short(part.chromosome, 6),
          ),
        );
    });
    axes(svg, {
      x,
      y,
      box,
      xTicks: [],
      xLabel: "chromosome",
      yLabel: known ? "confidence" : "size of the effect",
    });
    if (known && data.chance)
      svg.append(
        s(
          "line",
          {
            class: "chance-line",
            x1: box.left,
            x2: box.right,
            y1: y(data.chance.level),
            y2: y(data.chance.level),
          },
          s("title", {}, `permuted labels reach ${fixed(data.chance.level)}`),
        ),
      );
    const points = [];
    let lines = "";
    spotOf = (g) => {
      const start = page.members.start[g];
      const [chromosome, position] = [place.chromosome[start], place.position[start]];
      if (!starts.has(String(chromosome)) || position === null || height_(g) === null) return null;
      return [
        x(starts.get(String(chromosome)) + position),
        y(height_(g)),
        2.5 + Math.min(6, Math.sqrt(groups.size[g]) * 0.6),
        g,
      ];
    };
    for (let g = 0; g < groups.n; g++) {
      const spot = spotOf(g);
      if (!spot) continue;
      points.push(spot);
      const start = page.members.start[g];
      let [low, high] = [Infinity, -Infinity];
      for (let m = start; m < page.members.start[g + 1]; m++) {
        if (place.chromosome[m] !== place.chromosome[start] || place.position[m] === null) continue;
        low = Math.min(low, place.position[m]);
        high = Math.max(high, place.position[m]);
      }
      const at = starts.get(String(place.chromosome[start]));
      lines += `M${x(at + low).toFixed(1)},${spot[1].toFixed(1)}H${x(at + high).toFixed(1)}`;
    }
    svg.append(s("path", { class: "reach", d: lines }));
    for (const negative of [false, true])
      svg.append(
        s("path", {
          class: `disc ${negative ? "less" : "more"}`,
          d: discs(points.filter((p) => groups.effect[p[3]] < 0 === negative)),
        }),
      );
    ring = s("circle", { class: "ring", r: 0, cx: 0, cy: 0 });
    const label = s("text", { class: "note halo strong", x: 0, y: 0 });
    svg.append(ring, label);
    const tree = quadtree(
      points,
      (p) => p[0],
      (p) => p[1],
    );
    svg.addEventListener("pointermove", (event) => {
      const frame = svg.getBoundingClientRect();
      const scale = width / frame.width;
      const found = tree.find(
        (event.clientX - frame.left) * scale,
        (event.clientY - frame.top) * scale,
        24,
      );
      svg.classList.toggle("pointing", Boolean(found));
      if (found) page.select(found[3]);
    });
    ring.label = label;
    ring.box = box;
    mark();
    return svg;
  }

  function mark() {
    if (!ring) return;
    const spot = page.selected === null ? null : spotOf(page.selected);
    ring.setAttribute("r", spot ? spot[2] + 3 : 0);
    ring.label.textContent = spot ? short(groups.label[page.selected], 24) : "";
    if (!spot) return;
    ring.setAttribute("cx", spot[0]);
    ring.setAttribute("cy", spot[1]);
    const left = spot[0] > (ring.box.left + ring.box.right) / 2;
    ring.label.setAttribute("x", spot[0] + (left ? -1 : 1) * (spot[2] + 7));
    ring.label.setAttribute("y", Math.max(ring.box.top + 4, spot[1] - 8));
    ring.label.setAttribute("text-anchor", left ? "end" : "start");
  }
}
