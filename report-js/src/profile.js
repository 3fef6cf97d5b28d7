// Page of a correlation profile: shares of pairs by correlation, on a logarithmic axis.

import { min } from "d3-array";
import { line } from "d3-shape";
import { axes, boxOf, canvas, linear, logarithmic } from "./axes.js";
import { download, toCsv } from "./csv.js";
import { byId, figure, h, s } from "./dom.js";
import { num } from "./format.js";

export function profilePage(data) {
  const picture = figure({
    title: "Distribution of the correlations",
    wide: true,
    draw: (width) => draw(data, width),
    caption: [
      "Bars: share of the pairs in the bin. Line: share of the pairs at or above its lower edge. " +
        "The axis is logarithmic.",
      data.exact ? "" : " Whiskers: limits of confidence of a sample.",
    ],
  });
  byId("pictures").replaceChildren(picture.node);
  picture.redraw();
  byId("groups").replaceChildren(...binTable(data));
}

function draw(data, width) {
  const { bins } = data;
  const height = Math.max(260, Math.min(380, width * 0.5));
  const box = boxOf(width, height, { left: 64, right: 16, top: 30, bottom: 44 });
  const shares = [...bins.share, ...bins.share_at_least].filter((value) => value > 0);
  const x = linear()
    .domain([bins.low[0], bins.high[bins.high.length - 1]])
    .range([box.left, box.right]);
  const y = logarithmic()
    .domain([Math.min(min(shares), 1e-3) / 2, 1])
    .range([box.bottom, box.top])
    .clamp(true);
  const svg = canvas(width, height, `Share of pairs by absolute correlation: ${shareWords(bins)}.`);
  const powers = [];
  for (let power = Math.ceil(Math.log10(y.domain()[0])); power <= 0; power++)
    powers.push(10 ** power);
  axes(svg, {
    x,
    y,
    box,
    xLabel: "absolute correlation",
    yLabel: "share of pairs",
    yTicks: powers.filter((_, i) => (powers.length - 1 - i) % Math.ceil(powers.length / 7) === 0),
    yFormat: (t) => `${num(100 * t, 1)} %`,
  });
  bins.low.forEach((low, i) => {
    if (!(bins.share[i] > 0)) return;
    const [left, right] = [x(low) + 1, x(bins.high[i]) - 1];
    svg.append(
      s(
        "rect",
        {
          class: "bar",
          x: left,
          width: Math.max(1, right - left),
          y: y(bins.share[i]),
          height: box.bottom - y(bins.share[i]),
        },
        s(
          "title",
          {},
          `${num(low)} to ${num(bins.high[i])}: ` +
            `${num(100 * bins.share[i])} % (${num(bins.pairs[i])} pairs)`,
        ),
      ),
    );
    if (!data.exact && bins.share_low[i] !== null)
      svg.append(
        s("line", {
          class: "whisker",
          x1: (left + right) / 2,
          x2: (left + right) / 2,
          y1: y(Math.max(bins.share_low[i], y.domain()[0])),
          y2: y(bins.share_high[i]),
        }),
      );
  });
  const points = bins.low
    .map((low, i) => [low, bins.share_at_least[i]])
    .filter(([, share]) => share > 0);
  svg.append(
    s("path", { class: "curve less", d: line()(points.map(([low, share]) => [x(low), y(share)])) }),
  );
  for (const [low, share] of points)
    svg.append(
      s(
        "circle",
        { class: "dot less", cx: x(low), cy: y(share), r: 3 },
        s("title", {}, `at least ${num(low)}: ${num(100 * share)} %`),
      ),
    );
  return svg;
}

function binTable(data) {
  const { bins } = data;
  const percent = (value) => (value === null ? "–" : `${num(100 * value)} %`);
  const heads = [
    "from",
    "to",
    "pairs",
    "share",
    "at or over",
    ...(data.exact ? [] : ["limits of the share"]),
  ];
  const table = h(
    "table",
    { class: "plain roomy" },
    h("caption", { class: "visually-hidden" }, "Bins of the profile"),
    h(
      "thead",
      {},
      h(
        "tr",
        {},
        heads.map((name) => h("th", { scope: "col", class: "n" }, name)),
      ),
    ),
    h(
      "tbody",
      {},
      bins.low.map((low, i) =>
        h(
          "tr",
          {},
          [
            num(low),
            num(bins.high[i]),
            num(bins.pairs[i]),
            percent(bins.share[i]),
            percent(bins.share_at_least[i]),
            ...(data.exact
              ? []
              : [`${percent(bins.share_low[i])} – ${percent(bins.share_high[i])}`]),
          ].map((text) => h("td", { class: "n" }, text)),
        ),
      ),
    ),
  );
  const names = Object.keys(bins);
  const save = h(
    "button",
    {
      type: "button",
      id: "csv",
      onclick: () =>
        download(
          `${data.stem}-profile.csv`,
          toCsv(
            names,
            bins.low.map((_, i) => names.map((name) => bins[name][i])),
          ),
        ),
    },
    "Download as CSV",
  );
  return [h("div", { class: "controls" }, save), h("div", { class: "scroller tall" }, table)];
}

function shareWords(bins) {
  const words = (low, i) =>
    `${num(low, 2)} to ${num(bins.high[i], 2)}: ${num(100 * bins.share[i], 2)} %`;
  return bins.low.map(words).join(", ");
}
