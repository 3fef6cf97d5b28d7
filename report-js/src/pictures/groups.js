// All groups: effect against confidence, area by number of members, with the confidence reached
// with permuted labels.

import { extent, max } from "d3-array";
import { quadtree } from "d3-quadtree";
import { axes, boxOf, canvas, discs, linear } from "../axes.js";
import { figure, s } from "../dom.js";
import { fixed, num, short, signedNum } from "../format.js";
import { fitted, widthOf } from "../labels.js";

const NAMED = 10;
// Widths to which a name may be cut to find a place, in pixels.
const ROOMS = [320, 130];
// Discs of one path do not add up where they overlap; those of several do, and show where many lie.
const LAYERS = 24;

export function groupsPicture(page) {
  const { data, groups } = page;
  const known = groups.confidence.some((value) => value !== null);
  const anySign = groups.effect.some((value) => value < 0);
  const chance = data.chance;
  const words = known
    ? ["Each disc is a group. Its area shows the number of features."]
    : ["Each disc is a group, in order of discovery. Its area shows the number of features."];
  if (known && chance)
    words.push(
      "Shaded: confidences that groups reach with permuted labels " +
        `(up to ${fixed(chance.level)}; ${chance.n_permutations}\u00d7).`,
    );
  words.push("Point at a disc or use the arrow keys to show the group below.");
  const picture = figure({
    title: known ? "Effect and confidence of the groups" : "Effect of the groups",
    caption: words.join(" "),
    className: "groups",
    draw,
  });
  page.onSelect(() => mark());
  let place = () => null;
  let ring = null;
  return picture;

  function draw(width) {
    const height = Math.max(230, Math.min(320, width * 0.6));
    const box = boxOf(width, height, { left: 46, right: 18, top: 30, bottom: 44 });
    const r = linear()
      .domain([0, Math.sqrt(Math.max(4, max(groups.size)))])
      .range(
        groups.n > 2000 ? [1, 2.6] : groups.n > 400 ? [1.5, 6] : [2, Math.min(16, width / 26)],
      );
    const lowest = Math.min(0, ...extent(groups.effect));
    const highest = Math.max(0, ...extent(groups.effect));
    const room = 0.07 * (highest - lowest || 1);
    const span = [lowest < 0 ? lowest - room : 0, highest > 0 ? highest + room : 0];
    const x = known
      ? linear()
          .domain(span[0] === span[1] ? [-1, 1] : span)
          .range([box.left + 10, box.right - 12])
      : linear()
          .domain([0.5, groups.n + 0.5])
          .range([box.left + 8, box.right - 8]);
    const y = known
      ? linear()
          .domain([0, 1])
          .range([box.bottom, box.top + 6])
      : linear()
          .domain(span[0] === span[1] ? [-1, 1] : span)
          .nice(4)
          .range([box.bottom, box.top + 6]);
    const svg = canvas(width, height, summary());
    svg.setAttribute("tabindex", "0");
    svg.setAttribute("role", "application");
    svg.setAttribute("aria-roledescription", "chart");
    if (known && chance) {
      const at = y(chance.level);
      svg.append(
        s("rect", {
          class: "chance",
          x: box.left,
          width: box.right - box.left,
          y: at,
          height: box.bottom - at,
        }),
      );
      svg.append(s("line", { class: "chance-line", x1: box.left, x2: box.right, y1: at, y2: at }));
    }
    axes(
      svg,
      known
        ? {
            x,
            y,
            box,
            xLabel: effectLabel(data),
            yLabel: "confidence",
            yTicks: [0, 0.25, 0.5, 0.75, 1],
            yFormat: (t) => fixed(t),
          }
        : {
            x,
            y,
            box,
            xLabel: "group, in order of discovery",
            yLabel: effectUnit(data),
            xTicks: x.ticks(6).filter((t) => Number.isInteger(t) && t >= 1),
          },
    );
    if (known && anySign)
      svg.append(s("line", { class: "zero", x1: x(0), x2: x(0), y1: box.top, y2: box.bottom }));
    if (!known && anySign)
      svg.append(s("line", { class: "zero", x1: box.left, x2: box.right, y1: y(0), y2: y(0) }));
    if (known && chance)
      svg.append(
        s(
          "text",
          {
            class: "note halo end",
            x: box.right - 2,
            y: chance.level < 0.12 ? y(chance.level) - 6 : box.bottom - 8,
          },
          `permuted labels: up to ${fixed(chance.level)}`,
        ),
      );
    place = (g) => {
      const value = groups.effect[g];
      if (!known) return [x(g + 1), y(value ?? 0), r(Math.sqrt(groups.size[g]))];
      return groups.confidence[g] === null
        ? null
        : [x(value ?? 0), y(groups.confidence[g]), r(Math.sqrt(groups.size[g]))];
    };
    const points = [];
    for (let g = 0; g < groups.n; g++) {
      const at = place(g);
      if (at) points.push([...at, g]);
    }
    points.sort((a, b) => b[2] - a[2]); // small discs are drawn over large ones
    const few = groups.n <= 400;
    for (const negative of [false, true]) {
      const own = points.filter((p) => groups.effect[p[3]] < 0 === negative);
      const name = `disc ${negative ? "less" : "more"} ${few ? "" : "many"}`;
      if (few) for (const p of own) svg.append(s("path", { class: name, d: discs([p]) }));
      else
        for (let layer = 0; layer < LAYERS; layer++)
          svg.append(
            s("path", { class: name, d: discs(own.filter((_, i) => i % LAYERS === layer)) }),
          );
    }
    if (known) nameStrongest(svg, points, box);
    ring = s("circle", { class: "ring", r: 0, cx: 0, cy: 0 });
    svg.append(ring);
    const tree = quadtree(
      points,
      (p) => p[0],
      (p) => p[1],
    );
    const nearest = (event) => {
      const frame = svg.getBoundingClientRect();
      const scale = width / frame.width;
      return tree.find(
        (event.clientX - frame.left) * scale,
        (event.clientY - frame.top) * scale,
        28,
      )?.[3];
    };
    svg.addEventListener("pointermove", (event) => {
      const g = nearest(event);
      svg.classList.toggle("pointing", g !== undefined);
      if (g !== undefined) page.select(g);
    });
    svg.addEventListener("click", (event) => {
      const g = nearest(event);
      if (g !== undefined) page.select(g);
    });
    svg.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      if (step) {
        page.select((page.selected + step + groups.n) % groups.n, true);
        event.preventDefault();
      }
    });
    mark();
    return svg;
  }

  // Names of the largest effects, beside, above or below their discs, where they fit.
  function nameStrongest(svg, points, box) {
    const strongest = [...points].sort(
      (a, b) =>
        Math.abs(groups.effect[b[3]]) * groups.confidence[b[3]] -
        Math.abs(groups.effect[a[3]]) * groups.confidence[a[3]],
    );
    const discs_ = points.length < 500 ? points : [];
    const taken = [];
    const free = (area, own) =>
      area[0] >= box.left - 6 &&
      area[1] <= box.right + 14 &&
      area[2] >= (area[0] < box.left + 70 ? box.top : box.top - 26) && // beside the axis label
      area[3] <= box.bottom &&
      !taken.some((o) => overlap(area, o)) &&
      !discs_.some(([x, y, r, g]) => g !== own && overlap(area, [x - r, x + r, y - r, y + r]));
    for (const point of strongest.slice(0, NAMED)) {
      const found = ROOMS.flatMap((room) => places(point, fitted(groups.label[point[3]], room)));
      const place = found.find(({ area }) => free(area, point[3]));
      if (!place) continue;
      taken.push(place.area);
      const { text, x, y, anchor } = place;
      svg.append(s("text", { class: `note halo ${anchor}`, x, y }, text));
    }
  }

  function places([x, y, r], text) {
    const [length, gap] = [widthOf(text), r + 6];
    const at = (left, base, anchor, from) => ({
      text,
      x: from,
      y: base,
      anchor,
      area: [left, left + length, base - 11, base + 3],
    });
    return [
      at(x + gap, y + 4, "", x + gap),
      at(x - gap - length, y + 4, "end", x - gap),
      at(x - length / 2, y - gap, "middle", x),
      at(x - length / 2, y + gap + 9, "middle", x),
    ];
  }

  function mark() {
    const at = ring && page.selected !== null ? place(page.selected) : null;
    if (!ring) return;
    ring.setAttribute("r", at ? at[2] + 3 : 0);
    if (at) {
      ring.setAttribute("cx", at[0]);
      ring.setAttribute("cy", at[1]);
    }
  }

  function summary() {
    const strongest = groups.effect.reduce(
      (best, value, g) => (Math.abs(value ?? 0) > Math.abs(groups.effect[best] ?? 0) ? g : best),
      0,
    );
    const what = known ? "effect against confidence" : "effects in order of discovery";
    const largest = `${short(groups.label[strongest], 60)}, ${signedNum(groups.effect[strongest])}`;
    return (
      `${num(groups.n)} groups, ${what}. Largest effect: ${largest}. ` +
      "Arrow keys move between groups."
    );
  }
}

function overlap(a, b) {
  return a[0] < b[1] && b[0] < a[1] && a[2] < b[3] && b[2] < a[3];
}

export function effectLabel(data) {
  const effect = effectUnit(data);
  if (data.task === "classification" && data.classes?.length === 2)
    return `${short(data.classes[0], 20)} ←  ${effect}  → ${short(data.classes[1], 20)}`;
  if (data.task === "regression") return `lower ←  ${effect}  → higher`;
  if (data.task === "survival") return `later ←  ${effect}  → earlier`;
  return data.classes?.length > 2 ? `largest ${effect}` : effect;
}

function effectUnit(data) {
  if (data.task === "classification") return "log-odds per standard deviation";
  if (data.task === "survival") return "log hazard ratio per standard deviation";
  return "effect per standard deviation";
}
