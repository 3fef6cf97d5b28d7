// The support feature by class, or against the trait.

import { extent } from "d3-array";
import { axes, boxOf, canvas, discs, linear } from "../axes.js";
import { h, s } from "../dom.js";
import { clipped, fixed, num, short } from "../format.js";
import { fitted, widest } from "../labels.js";

export function valuesPicture(page, g, width) {
  const { data } = page;
  const levels = data.levels?.[g];
  if (levels && data.classes) return levelBars(page, g, levels, width);
  const at = data.values ? data.values.group.indexOf(g) : -1;
  if (at < 0)
    return data.statistics && data.classes
      ? boxes(page, g, null, width)
      : h(
          "p",
          { class: "quiet" },
          data.values
            ? `Values are stored for the first ${num(data.values.group.length)} groups only.`
            : "Values were not stored.",
        );
  const values = data.values.rows[at];
  return data.classes ? boxes(page, g, values, width) : against(page, g, values, width);
}

// A deterministic pseudorandom number between -1 and 1.
function scatter(i) {
  const x = Math.sin(i * 12.9898 + 4.1414) * 43758.5453;
  return 2 * (x - Math.floor(x)) - 1;
}

function rowBox(page, width, rows, rowHeight) {
  const left = 12 + widest(page.data.classes, 20, Math.min(width * 0.45, 240) - 12);
  const height = rows * rowHeight + 62;
  return {
    height,
    room: left - 12,
    box: boxOf(width, height, { left, right: 14, top: 14, bottom: 48 }),
  };
}

function boxes(page, g, values, width) {
  const { data, groups } = page;
  const { classes } = data;
  const statistics = data.statistics?.[g];
  const rowHeight = classes.length > 8 ? 22 : classes.length > 4 ? 34 : 52;
  const { height, box, room } = rowBox(page, width, classes.length, rowHeight);
  const spans = (statistics ?? []).map(spanOf);
  const ends = [
    ...(values ?? []),
    ...spans.flatMap((span) => (span ? [span.low, span.high] : [])),
  ].filter((v) => v !== null);
  const quartiles = spans.some((span) => span?.quartiles);
  const x = linear()
    .domain(extent(ends))
    .nice(5)
    .range([box.left + 6, box.right - 6]);
  const svg = canvas(
    width,
    height,
    `${clipped(groups.label[g], 60)} by class: ${classes
      .map((name, c) => (spans[c] ? `${short(name, 40)} ${num(spans[c].middle)}` : ""))
      .filter(Boolean)
      .join(", ")}.`,
  );
  axes(svg, { x, y: null, yTicks: [], box, xLabel: short(groups.label[g], 48) });
  classes.forEach((name, c) => {
    const middle = box.top + rowHeight * (c + 0.5);
    svg.append(
      s(
        "text",
        { class: "tick end", x: box.left - 6, y: middle + 4 },
        fitted(name, room),
        s("title", {}, clipped(name)),
      ),
    );
    if (values) {
      const points = [];
      values.forEach((value, i) => {
        if (data.values.target[i] === c && value !== null)
          points.push([
            x(value),
            middle + scatter(i) * rowHeight * 0.34,
            classes.length > 8 ? 1.6 : 2.2,
          ]);
      });
      svg.append(s("path", { class: `sample ${tone(classes.length, c)}`, d: discs(points) }));
    }
    const [row, span] = [statistics?.[c], spans[c]];
    if (span) {
      const tall = Math.min(18, rowHeight * 0.5);
      svg.append(
        s(
          "rect",
          {
            class: "box",
            x: x(span.low),
            y: middle - tall / 2,
            width: Math.max(1, x(span.high) - x(span.low)),
            height: tall,
            rx: 2,
          },
          s(
            "title",
            {},
            `${clipped(name, 80)}: ${num(row.n)} samples, ` +
              (span.quartiles
                ? `median ${num(row.median)}, quartiles ${num(row.q1)} and ${num(row.q3)}, `
                : "") +
              `mean ${num(row.mean)} ± ${num(row.sd)} (standard deviation)`,
          ),
        ),
      );
      svg.append(
        s("line", {
          class: "median",
          x1: x(span.middle),
          x2: x(span.middle),
          y1: middle - tall / 2 - 2,
          y2: middle + tall / 2 + 2,
        }),
      );
    }
  });
  const isPart = values && data.values.n < data.samples;
  const some = isPart ? ` (${num(data.values.n)} of ${num(data.samples)})` : "";
  const shape = quartiles ? "quartiles and median" : "mean ± standard deviation";
  return [
    svg,
    h(
      "p",
      { class: "quiet" },
      `Boxes: ${shape} of each class${values ? `; dots: single samples${some}` : ""}.`,
    ),
  ];
}

// The box of a class: quartiles and median or, if they were left out, mean and standard deviation.
function spanOf(row) {
  if (!row) return null;
  if (row.q1 !== undefined && row.q1 !== null)
    return { low: row.q1, middle: row.median, high: row.q3, quartiles: true };
  if (row.mean === null) return null;
  return { low: row.mean - row.sd, middle: row.mean, high: row.mean + row.sd, quartiles: false };
}

function tone(n, c) {
  return n === 2 ? (c ? "more" : "less") : "more";
}

function levelBars(page, g, levels, width) {
  const { data, groups } = page;
  const rowHeight = data.classes.length > 8 ? 20 : 34;
  const { height, box, room } = rowBox(page, width, data.classes.length, rowHeight);
  const x = linear().domain([0, 1]).range([box.left, box.right]);
  const said = data.classes.map(
    (name, c) =>
      `${short(name, 40)} ` +
      levels.names.map((level, k) => `${level}: ${share(levels.counts[c], k)}`).join(", "),
  );
  const svg = canvas(
    width,
    height,
    `Values of ${clipped(groups.label[g], 60)} by class: ${said.slice(0, 6).join("; ")}.`,
  );
  axes(svg, {
    x,
    y: null,
    yTicks: [],
    box,
    xTicks: [0, 0.25, 0.5, 0.75, 1],
    xFormat: (t) => `${100 * t} %`,
    xLabel: `share of samples by value of ${short(groups.label[g], 36)}`,
  });
  const last = levels.names.length - 1;
  data.classes.forEach((name, c) => {
    const y = box.top + rowHeight * c;
    svg.append(
      s(
        "text",
        { class: "tick end", x: box.left - 6, y: y + rowHeight / 2 + 4 },
        fitted(name, room),
        s("title", {}, clipped(name)),
      ),
    );
    const total = levels.counts[c].reduce((a, b) => a + b, 0) || 1;
    let before = 0;
    levels.names.forEach((level, k) => {
      const part = levels.counts[c][k] / total;
      svg.append(
        s(
          "rect",
          {
            class: "level",
            x: x(before),
            y: y + 3,
            width: Math.max(0, x(part) - x(0)),
            height: rowHeight - 6,
            "fill-opacity": (0.1 + (0.85 * k) / Math.max(1, last)).toFixed(2),
          },
          s(
            "title",
            {},
            `${clipped(name, 80)}, ${level}: ` +
              `${num(levels.counts[c][k])} of ${num(total)} (${share(levels.counts[c], k)})`,
          ),
        ),
      );
      before += part;
    });
  });
  const legend = h(
    "p",
    { class: "quiet legend" },
    "Value:",
    levels.names.map((level, k) =>
      h(
        "span",
        { class: "key" },
        h("i", {
          class: "level-key",
          style: { opacity: (0.1 + (0.85 * k) / Math.max(1, last)).toFixed(2) },
        }),
        ` ${level}`,
      ),
    ),
  );
  return [svg, legend];
}

function share(counts, k) {
  return `${fixed((100 * counts[k]) / (counts.reduce((a, b) => a + b, 0) || 1), 0)} %`;
}

function against(page, g, values, width) {
  const { data, groups } = page;
  const trait = data.values.target;
  const height = Math.max(220, Math.min(300, width * 0.62));
  const box = boxOf(width, height, { left: 52, right: 14, top: 30, bottom: 44 });
  const distinct = new Set(values).size;
  const x = linear()
    .domain(extent(values))
    .nice(5)
    .range([box.left + (distinct <= 6 ? 34 : 8), box.right - (distinct <= 6 ? 34 : 8)]);
  const y = linear()
    .domain(extent(trait))
    .nice(5)
    .range([box.bottom - 4, box.top + 4]);
  const [slope, level, r] = leastSquares(values, trait);
  const svg = canvas(
    width,
    height,
    `${data.label ? short(data.label, 40) : "Target"} against ${clipped(groups.label[g], 60)}: ` +
      `correlation ${fixed(r)} over the samples shown.`,
  );
  axes(svg, {
    x,
    y,
    box,
    xLabel: short(groups.label[g], 40),
    yLabel: short(data.label ?? "target", 30),
    xTicks: distinct <= 6 ? [...new Set(values)].sort((a, b) => a - b) : undefined,
  });
  const jitter = distinct <= 6 ? Math.min(26, (box.right - box.left) / distinct / 4) : 0;
  svg.append(
    s("path", {
      class: "sample more",
      d: discs(values.map((value, i) => [x(value) + jitter * scatter(i), y(trait[i]), 2.3])),
    }),
  );
  if (Number.isFinite(slope)) {
    const [low, high] = extent(values);
    const clip = (v) => Math.max(y.domain()[0], Math.min(y.domain()[1], v));
    svg.append(
      s("line", {
        class: "trend",
        x1: x(low),
        y1: y(clip(level + slope * low)),
        x2: x(high),
        y2: y(clip(level + slope * high)),
      }),
    );
  }
  const some =
    data.values.n < data.samples
      ? `${num(data.values.n)} of ${num(data.samples)} samples`
      : "single samples";
  return [
    svg,
    h(
      "p",
      { class: "quiet" },
      `Dots: ${some}; ` + `line: least squares (correlation ${fixed(r)}), of this feature alone.`,
    ),
  ];
}

function leastSquares(x, y) {
  const n = x.length;
  const mx = x.reduce((a, b) => a + b, 0) / n;
  const my = y.reduce((a, b) => a + b, 0) / n;
  let [xx, xy, yy] = [0, 0, 0];
  for (let i = 0; i < n; i++) {
    xx += (x[i] - mx) ** 2;
    xy += (x[i] - mx) * (y[i] - my);
    yy += (y[i] - my) ** 2;
  }
  return [xy / xx, my - (xy / xx) * mx, xy / Math.sqrt(xx * yy)];
}
