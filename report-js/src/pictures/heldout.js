// Held-out predictions: ROC curves, calibration, table of confusions, predicted against observed
// numbers, and survival by risk.

import { extent, max } from "d3-array";
import { line } from "d3-shape";
import { axes, boxOf, canvas, discs, linear } from "../axes.js";
import { figure, h, s } from "../dom.js";
import { clipped, count, fixed, num, short } from "../format.js";
import { fitted, widest } from "../labels.js";

// Number of curves with a colour of their own, and of classes in a table of confusions.
const COLOURED = 7;
const CONFUSED = 20;
const DASHES = ["", "6 3", "2 3"];

export function heldOutPictures(data) {
  const { score } = data;
  if (!score) return [];
  const { roc = [], calibration = [], points = [] } = score.diagnostics ?? {};
  const found = [];
  if (roc.length) found.push(rocPicture(data, roc));
  if (roc.length && calibration.length) found.push(calibrationPicture(calibration[0]));
  if (!roc.length) {
    const owners = points.length ? points : calibration;
    for (const { of } of owners)
      found.push(
        observedPicture(
          data,
          of,
          points.find((own) => own.of === of),
          calibration.find((own) => own.of === of),
        ),
      );
  }
  const { confusion } = score;
  if (confusion && confusion.classes.length <= CONFUSED) found.push(confusionPicture(confusion));
  if (score.curves) found.push(survivalPicture(score.curves, data.label));
  return found;
}

function square(width) {
  const height = Math.max(230, Math.min(330, width * 0.7));
  return { height, box: boxOf(width, height, { left: 52, right: 16, top: 30, bottom: 44 }) };
}

function rocPicture(data, curves) {
  const two = curves.length === 1;
  const auc = two ? (data.score.figures?.["ROC AUC"] ?? null) : null;
  const [low, high] = auc?.interval ?? [null, null];
  const range = low === null || high === null ? "" : ` (95% interval ${num(low)} to ${num(high)})`;
  return figure({
    title: "ROC curve",
    caption: two
      ? `Class ${short(curves[0].of, 40)}: area ${num(curves[0].area)}${range}. ` +
        "Mean over the folds. Dashed: no information."
      : "Each class against all others, by its held-out probability. Dashed: no information.",
    className: "roc",
    draw,
  });

  function draw(width) {
    const { height, box } = square(width);
    const x = linear().domain([0, 1]).range([box.left, box.right]);
    const y = linear().domain([0, 1]).range([box.bottom, box.top]);
    const said = curves.map((own) => `${two ? "" : `${short(own.of, 40)} `}${num(own.area)}`);
    const svg = canvas(
      width,
      height,
      `ROC curve of held-out predictions: area ${said.join(", ")}.`,
    );
    axes(svg, { x, y, box, xLabel: "false positive rate", yLabel: "true positive rate" });
    svg.append(diagonal(x, y, [0, 1]));
    curves.forEach((own, k) => {
      const path = line()(
        own.false_positive_rate.map((v, i) => [x(v), y(own.true_positive_rate[i])]),
      );
      const title = s("title", {}, `${clipped(own.of, 80)}: area ${num(own.area)}`);
      const coloured = two ? "curve" : `series series-${Math.min(k, COLOURED - 1)}`;
      svg.append(s("path", { class: coloured, d: path }, title));
    });
    return two ? svg : [svg, areas()];
  }

  function areas() {
    const key = (k) => {
      const svg = canvas(22, 10, "");
      svg.setAttribute("aria-hidden", "true");
      svg.classList.add("fixed");
      const style = `series series-${Math.min(k, COLOURED - 1)}`;
      svg.append(s("line", { class: style, x1: 1, x2: 21, y1: 5, y2: 5 }));
      return svg;
    };
    return h(
      "ul",
      { class: "legend-list" },
      curves.map((own, k) =>
        h("li", {}, key(k), h("bdi", { title: clipped(own.of) }, short(own.of, 30)), num(own.area)),
      ),
    );
  }
}

function diagonal(x, y, [low, high]) {
  return s("line", { class: "constant", x1: x(low), y1: y(low), x2: x(high), y2: y(high) });
}

function calibrationPicture(curve) {
  const what = curve.of === null ? "the predicted class" : short(curve.of, 40);
  return figure({
    title: "Calibration",
    caption:
      "Samples in bins of similar held-out probability: share of the class by mean probability, " +
      "with 95% intervals. Discs on the dashed line: probabilities are right.",
    className: "calibration",
    draw,
  });

  function draw(width) {
    const { height, box } = square(width);
    const x = linear().domain([0, 1]).range([box.left, box.right]);
    const y = linear().domain([0, 1]).range([box.bottom, box.top]);
    const said = curve.predicted.map((v, i) => `${fixed(v)}: ${fixed(curve.observed[i])}`);
    const svg = canvas(
      width,
      height,
      `Observed share by probability of ${what}. ${said.join(", ")}.`,
    );
    const [xLabel, yLabel] = [`predicted probability of ${what}`, "observed share"];
    axes(svg, { x, y, box, xLabel, yLabel });
    svg.append(diagonal(x, y, [0, 1]));
    binned(svg, curve, x, y);
    return svg;
  }
}

function binned(svg, curve, x, y) {
  const words = (i) =>
    `predicted ${num(curve.predicted[i])}, observed ${num(curve.observed[i])} ` +
    `(${num(curve.low[i])} to ${num(curve.high[i])}), ${count(curve.samples[i], "sample")}`;
  curve.predicted.forEach((value, i) => {
    const at = x(value);
    const [top, bottom] = y.range()[0] > y.range()[1] ? y.range().reverse() : y.range();
    const within = (v) => Math.min(bottom, Math.max(top, y(v)));
    const [y1, y2] = [within(curve.low[i]), within(curve.high[i])];
    svg.append(s("line", { class: "whisker", x1: at, x2: at, y1, y2 }));
    const disc = { class: "chosen-dot", cx: at, cy: y(curve.observed[i]), r: 4.5 };
    svg.append(s("circle", disc, s("title", {}, words(i))));
  });
}

function observedPicture(data, of, points, curve) {
  const target = of ?? data.label;
  const parts = [];
  if (points) {
    const some =
      points.observed.length < data.samples
        ? `${num(points.observed.length)} of ${num(data.samples)} samples`
        : "single samples";
    parts.push(`Dots: ${some}, predicted without their fold.`);
  }
  if (curve) parts.push("Circles: means of samples with similar predictions, with 95% intervals.");
  parts.push("Dashed: predicted equals observed.");
  return figure({
    title: of === null ? "Predicted and observed" : `Predicted and observed: ${short(of, 60)}`,
    caption: parts.join(" "),
    className: "observed",
    draw,
  });

  function draw(width) {
    const { height, box } = square(width);
    const across = [...(points?.predicted ?? []), ...(curve?.predicted ?? [])];
    const up = [...(points?.observed ?? []), ...(curve ? [...curve.low, ...curve.high] : [])];
    const x = linear()
      .domain(extent(across))
      .nice(5)
      .range([box.left + 6, box.right - 6]);
    const y = linear()
      .domain(extent(up))
      .nice(5)
      .range([box.bottom - 4, box.top + 4]);
    const r2 = data.score.figures?.[of === null ? "R²" : `R² of ${of}`]?.value;
    const words = r2 === undefined ? "" : ` R² ${num(r2)}.`;
    const named = short(target ?? "the target", 60);
    const svg = canvas(width, height, `Observed against held-out predicted ${named}.${words}`);
    const yLabel = target ? `observed ${short(target, 40)}` : "observed";
    axes(svg, {
      x,
      y,
      box,
      xLabel: target ? `predicted ${short(target, 40)}` : "predicted",
      yLabel,
    });
    const ends = [Math.max(x.domain()[0], y.domain()[0]), Math.min(x.domain()[1], y.domain()[1])];
    if (points) {
      const spots = points.predicted.map((v, i) => [x(v), y(points.observed[i]), 2.3]);
      svg.append(s("path", { class: "sample more", d: discs(spots) }));
    }
    if (ends[0] < ends[1]) svg.append(diagonal(x, y, ends));
    if (curve) binned(svg, curve, x, y);
    return svg;
  }
}

function confusionPicture({ classes, counts }) {
  const total = counts.map((row) => row.reduce((a, b) => a + b, 0));
  const right = counts.reduce((sum, row, c) => sum + row[c], 0);
  const all = total.reduce((a, b) => a + b, 0);
  return figure({
    title: "Classes and predicted classes",
    caption:
      "Number of held-out samples. Colour: share of the samples of the class " +
      "(blue: right, orange: wrong).",
    className: "confusion",
    draw,
  });

  function draw(width) {
    const n = classes.length;
    const gutter = 12 + widest(classes, 40, Math.max(70, Math.min(220, width - 10 - 44 * n)));
    const cell = Math.min(92, (width - gutter - 4) / n);
    const size = Math.max(18, Math.min(44, cell));
    const flat = widest(classes, 0, 1000) <= cell - 8;
    const slope = cell < 30 ? 70 : 40;
    const long = widest(classes, 0, flat ? 1000 : 130);
    const rise = Math.sin((slope * Math.PI) / 180);
    const top = 26 + (flat ? 16 : long * rise + 8);
    const height = top + n * size + 4;
    const words = `${num(right)} of ${num(all)} held-out samples have the right class.`;
    const svg = canvas(width, height, words);
    svg.append(s("text", { class: "axis-label", x: gutter, y: 13 }, "predicted class"));
    classes.forEach((name, c) => {
      const x = gutter + cell * (c + 0.5);
      const turn = flat ? "" : ` rotate(${-slope})`;
      const place = `translate(${x.toFixed(1)},${(top - 8).toFixed(1)})${turn}`;
      const style = { class: flat ? "tick middle" : "tick", transform: place };
      const room = flat ? cell : Math.min(130, (width - x - 4) / Math.cos((slope * Math.PI) / 180));
      svg.append(s("text", style, fitted(name, Math.max(30, room)), s("title", {}, clipped(name))));
      const y = top + size * (c + 0.5) + 4;
      const label = fitted(name, gutter - 12);
      const own = { class: "tick end", x: gutter - 8, y };
      svg.append(s("text", own, label, s("title", {}, clipped(name))));
    });
    counts.forEach((row, r) =>
      row.forEach((value, c) => {
        const share = total[r] ? value / total[r] : 0;
        const [x, y] = [gutter + cell * c, top + size * r];
        const title =
          `${clipped(classes[r], 80)}, predicted ${clipped(classes[c], 80)}: ` +
          `${num(value)} of ${num(total[r])} (${fixed(100 * share, 0)} %)`;
        const shape = { x, y, width: Math.max(1, cell - 2), height: size - 2, rx: 2 };
        const style = `cell ${r === c ? "more" : "less"}`;
        const ground = { class: "ground", ...shape };
        svg.append(s("rect", ground));
        svg.append(
          s(
            "rect",
            { class: style, ...shape, "fill-opacity": share.toFixed(2) },
            s("title", {}, title),
          ),
        );
        if (cell >= 22 && (value || n <= 10))
          svg.append(
            s(
              "text",
              {
                class: `cell-text middle ${share > 0.6 ? "on" : ""}`,
                x: x + cell / 2 - 1,
                y: y + size / 2 + 3,
              },
              num(value),
            ),
          );
      }),
    );
    return svg;
  }
}

function survivalPicture(curves, label) {
  const p = curves.p_value;
  const test = p === null ? "" : ` Log-rank test: p = ${num(p, 2)} (approximate).`;
  return figure({
    title: "Survival by held-out risk",
    caption:
      "Kaplan–Meier curves of the thirds of the samples with low, medium and high risk, " +
      `predicted without their fold.${test}`,
    className: "survival",
    draw,
  });

  function draw(width) {
    const { height, box } = square(width);
    const { groups } = curves;
    const latest = max(groups, (own) => own.times[own.times.length - 1]) || 1;
    const x = linear().domain([0, latest]).range([box.left, box.right]);
    const y = linear().domain([0, 1]).range([box.bottom, box.top]);
    const medians = groups.map((own) => `${own.name}: median ${median(own)}`).join(", ");
    const svg = canvas(width, height, `Survival by held-out risk. ${medians}.`);
    const xLabel = label ? short(label, 40) : "time";
    axes(svg, { x, y, box, xLabel, yLabel: "probability of survival" });
    groups.forEach((own, k) => {
      const points = [];
      own.times.forEach((time, i) => {
        if (i && own.joined !== true) points.push([x(time), y(own.survival[i - 1])]);
        points.push([x(time), y(own.survival[i])]);
      });
      const title = s(
        "title",
        {},
        `${own.name}: ${count(own.samples, "sample")}, ${num(own.events)} events`,
      );
      const style = { class: `series series-${[0, 3, 1][k]}`, "stroke-dasharray": DASHES[k] };
      svg.append(s("path", { ...style, d: line()(points) }, title));
    });
    return [svg, key(groups)];
  }

  function key(groups) {
    const item = (own, k) => {
      const svg = canvas(30, 10, "");
      svg.setAttribute("aria-hidden", "true");
      svg.classList.add("fixed");
      const style = { class: `series series-${[0, 3, 1][k]}`, "stroke-dasharray": DASHES[k] };
      svg.append(s("line", { ...style, x1: 1, x2: 29, y1: 5, y2: 5 }));
      return h("li", {}, svg, `${own.name}, median ${median(own)}`);
    };
    return h("ul", { class: "legend-list" }, groups.map(item));
  }
}

function median(own) {
  return own.median === null ? "not reached" : num(own.median);
}
