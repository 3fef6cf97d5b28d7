// Page of a comparison: one figure per measure, and the table of means.

import { extent, max, min } from "d3-array";
import { line } from "d3-shape";
import { axes, boxOf, canvas, linear, logarithmic } from "./axes.js";
import { download, toCsv } from "./csv.js";
import { byId, figure, h, s } from "./dom.js";
import { clipped, fixed, num, short, visible } from "./format.js";
import { Table } from "./table.js";

const DASHES = ["", "6 3", "2 3", "8 3 2 3"];
const MARKS = [
  (x, y) => `M${x - 3.5},${y}a3.5,3.5 0 1,0 7,0a3.5,3.5 0 1,0 -7,0`,
  (x, y) => `M${x - 3.2},${y - 3.2}h6.4v6.4h-6.4z`,
  (x, y) => `M${x},${y - 4.2}l4,7.2h-8z`,
  (x, y) => `M${x},${y - 4.6}l4.2,4.6l-4.2,4.6l-4.2,-4.6z`,
  (x, y) => `M${x},${y + 4.2}l4,-7.2h-8z`,
];

export function comparisonPage(data) {
  const pictures = data.measures
    .filter((measure) => data.rows[measure.key].some((value) => value !== null))
    .map((measure) => curves(data, measure));
  byId("pictures").replaceChildren(legend(data), ...pictures.map((part) => part.node));
  for (const part of pictures) part.redraw();
  byId("groups").replaceChildren(...summaryTable(data));
}

function style(i) {
  return {
    class: `series series-${i % 7}`,
    "stroke-dasharray": DASHES[Math.floor(i / 7) % DASHES.length],
  };
}

function legend(data) {
  return h(
    "ul",
    { class: "figure wide legend-list" },
    data.methods.map((name, i) => {
      const svg = canvas(34, 12, "");
      svg.setAttribute("aria-hidden", "true");
      svg.classList.add("fixed");
      svg.append(
        s("line", { ...style(i), x1: 1, x2: 33, y1: 6, y2: 6 }),
        s("path", { class: `series-mark series-${i % 7}`, d: MARKS[i % MARKS.length](17, 6) }),
      );
      return h(
        "li",
        {},
        svg,
        " ",
        h("bdi", { title: clipped(name) }, short(name, 40)),
        data.failures[i] ? h("span", { class: "quiet" }, ` (${data.failures[i]})`) : null,
      );
    }),
  );
}

function curves(data, measure) {
  const { rows } = data;
  return figure({ title: measure.title, caption: measure.words, draw });

  function draw(width) {
    const height = Math.max(230, Math.min(320, width * 0.62));
    const box = boxOf(width, height, { left: 50, right: 14, top: 30, bottom: 44 });
    const values = rows[measure.key];
    const good = values
      .map((value, i) => i)
      .filter((i) => values[i] !== null && (!measure.logarithmic || values[i] > 0));
    const spread = rows[`${measure.key}_std`] ?? [];
    const low = min(good, (i) => values[i] - (measure.logarithmic ? 0 : (spread[i] ?? 0)));
    const high = max(good, (i) => values[i] + (measure.logarithmic ? 0 : (spread[i] ?? 0)));
    const [few, many] = extent(rows.n_features);
    const x = (many / few > 20 ? logarithmic() : linear())
      .domain(few === many ? [few * 0.5, many * 1.5] : [few, many])
      .range([box.left + 8, box.right - 8]);
    const y = (measure.logarithmic ? logarithmic() : linear())
      .domain(low === high ? [low * 0.9, high * 1.1 || 1] : [low, high])
      .nice(5)
      .range([box.bottom, box.top]);
    const svg = canvas(width, height, summary());
    const sizes = [...new Set(rows.n_features)].sort((a, b) => a - b);
    const yTicks = measure.logarithmic
      ? y.ticks(5).filter((t) => Math.abs(Math.log10(t) % 1) < 1e-9)
      : undefined;
    axes(svg, {
      x,
      y,
      box,
      xLabel: "number of features",
      yLabel: measure.unit,
      xTicks: sizes.filter((size, i) => !i || x(size) - x(sizes[i - 1]) > 22),
      yTicks: yTicks?.length > 1 ? yTicks : undefined,
    });
    data.methods.forEach((name, k) => {
      const own = good
        .filter((i) => rows.method[i] === k)
        .sort((a, b) => rows.n_features[a] - rows.n_features[b]);
      if (!own.length) return;
      svg.append(
        s("path", {
          ...style(k),
          d: line()(own.map((i) => [x(rows.n_features[i]), y(values[i])])),
        }),
      );
      for (const i of own) {
        const [cx, cy] = [x(rows.n_features[i]), y(values[i])];
        if (!measure.logarithmic && spread[i])
          svg.append(
            s("line", {
              class: `series series-${k % 7} whisker-thin`,
              x1: cx,
              x2: cx,
              y1: y(values[i] - spread[i]),
              y2: y(values[i] + spread[i]),
            }),
          );
        svg.append(
          s(
            "path",
            { class: `series-mark series-${k % 7}`, d: MARKS[k % MARKS.length](cx, cy) },
            s(
              "title",
              {},
              `${clipped(name, 60)}, ${selected(rows, i)} features: ${num(values[i])}` +
                (spread[i] ? ` ± ${num(spread[i], 2)}` : ""),
            ),
          ),
        );
      }
    });
    return svg;
  }

  function summary() {
    return `${measure.title}, for ${data.methods
      .slice(0, 12)
      .map((name) => short(name, 30))
      .join(", ")}. The figures are in the table.`;
  }
}

// Some methods select fewer features than requested.
function selected(rows, i) {
  const [wanted, found] = [rows.n_features[i], rows.n_selected?.[i] ?? null];
  return found === null || found === wanted ? num(wanted) : `${num(found)} of ${num(wanted)}`;
}

function summaryTable(data) {
  const { rows } = data;
  const plusMinus = (key, digits) => (i) => {
    const spread = rows[`${key}_std`]?.[i] ?? null;
    const mean = fixed(rows[key][i], digits);
    return rows[key][i] === null || spread === null ? mean : `${mean} ± ${fixed(spread, digits)}`;
  };
  const columns = [
    {
      key: "method",
      title: "Method",
      className: "kind-name",
      value: (i) => visible(data.methods[rows.method[i]]),
      show: (i) =>
        h(
          "bdi",
          { title: clipped(data.methods[rows.method[i]]) },
          clipped(data.methods[rows.method[i]], 80),
        ),
    },
    {
      key: "n_features",
      title: "Features",
      numeric: true,
      className: "kind-count key-size",
      value: (i) => rows.n_features[i],
      show: (i) => selected(rows, i),
    },
    {
      key: "accuracy",
      title: data.scoring,
      numeric: true,
      className: "confidence-wide",
      value: (i) => rows.accuracy[i],
      show: plusMinus("accuracy", 3),
    },
    {
      key: "redundancy_rate",
      title: "Redundancy",
      numeric: true,
      className: "kind-figure",
      value: (i) => rows.redundancy_rate[i],
      show: (i) => fixed(rows.redundancy_rate[i], 3),
    },
    {
      key: "fit_seconds",
      title: "Seconds",
      numeric: true,
      className: "kind-figure",
      value: (i) => rows.fit_seconds[i],
      show: (i) => num(rows.fit_seconds[i], 2),
    },
    {
      key: "weighted_consistency",
      title: "Stability",
      numeric: true,
      className: "kind-figure",
      value: (i) => rows.weighted_consistency[i],
      show: (i) => fixed(rows.weighted_consistency[i], 3),
    },
    {
      key: "status",
      title: "Notes",
      className: "kind-text",
      value: (i) => rows.status[i],
      show: (i) =>
        rows.status[i] === "ok"
          ? ""
          : h(
              "bdi",
              { title: clipped(rows.message[i]) },
              clipped(`${rows.status[i]}: ${rows.message[i]}`, 120),
            ),
    },
  ];
  const table = new Table({ columns, n: rows.method.length, caption: "Means over the folds" });
  const names = ["method", ...Object.keys(rows).filter((key) => key !== "method")];
  const save = h(
    "button",
    {
      type: "button",
      id: "csv",
      onclick: () =>
        download(
          `${data.stem}-summary.csv`,
          toCsv(
            names,
            table.order.map((i) =>
              names.map((key) => (key === "method" ? data.methods[rows.method[i]] : rows[key][i])),
            ),
          ),
        ),
    },
    "Download as CSV",
  );
  const search = h("input", {
    type: "search",
    id: "search",
    placeholder: "name of a method",
    autocomplete: "off",
  });
  const filter = () => {
    const wanted = search.value.trim().toLowerCase();
    table.setRows(
      rows.method
        .map((_, i) => i)
        .filter((i) => data.methods[rows.method[i]].toLowerCase().includes(wanted)),
    );
  };
  search.addEventListener("input", filter);
  requestAnimationFrame(filter);
  return [
    h(
      "div",
      { class: "controls" },
      h("label", { for: "search" }, "Search", search),
      h("p", { id: "count", role: "status" }, ""),
      save,
    ),
    table.node,
  ];
}
