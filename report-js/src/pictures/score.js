// Held-out score by number of features, with the standard error of the mean, the chosen size, and
// the training score in grey.

import { extent, max, min } from "d3-array";
import { area, line } from "d3-shape";
import { axes, boxOf, canvas, linear, logarithmic } from "../axes.js";
import { figure, s } from "../dom.js";
import { fixed, num } from "../format.js";

export function scorePicture(data) {
  const { curve, score } = data;
  const name = curve.score;
  const chosen = curve.sizes.indexOf(curve.chosen);
  const parts = ["Mean over the folds of cross-validation, with its standard error."];
  if (curve.training) parts.push("Grey: training score, which is optimistic.");
  if (score)
    parts.push(
      "Diamond: held-out score of the whole procedure, including this choice, with its interval; " +
        "that is the figure to quote.",
    );
  return figure({
    title: "Score by number of features",
    caption: parts.join(" "),
    className: "score",
    draw,
  });

  function draw(width) {
    const height = Math.max(230, Math.min(320, width * 0.6));
    const box = boxOf(width, height, { left: 46, right: 16, top: 30, bottom: 44 });
    const low = curve.mean.map((value, i) => value - (curve.error[i] ?? 0));
    const high = curve.mean.map((value, i) => value + (curve.error[i] ?? 0));
    const values = [
      ...low,
      ...high,
      ...(curve.training?.score ?? []),
      curve.constant,
      score?.value,
    ].filter((v) => v !== null && v !== undefined);
    const floor = Math.max(min(values), Math.min(min(low), curve.constant ?? Infinity) - 0.02);
    const [smallest, largest] = extent([...curve.sizes, curve.chosen]);
    const wideRange = largest / Math.max(1, smallest) > 20;
    const x = (wideRange ? logarithmic() : linear())
      .domain(smallest === largest ? [smallest - 0.5, largest + 0.5] : [smallest, largest])
      .range([box.left + 6, box.right - 6]);
    const y = linear()
      .domain([floor, max(values)])
      .nice(5)
      .range([box.bottom, box.top]);
    const svg = canvas(width, height, summary());
    axes(svg, {
      x,
      y,
      box,
      xLabel: "number of support features",
      yLabel: name,
      xTicks: ticksOf(curve.sizes, x, wideRange),
    });
    const points = curve.sizes.map((size, i) => [x(size), i]);
    if (curve.constant !== null && curve.constant !== undefined) {
      const at = y(curve.constant);
      svg.append(s("line", { class: "constant", x1: box.left, x2: box.right, y1: at, y2: at }));
      svg.append(
        s(
          "text",
          { class: "note end", x: box.right, y: at + (at > box.bottom - 16 ? -6 : 14) },
          `${baselineName(score)} ${num(curve.constant)}`,
        ),
      );
    }
    if (curve.training) {
      const kept = curve.training.sizes
        .map((size, i) => [size, curve.training.score[i]])
        .filter(([size]) => size >= smallest && size <= largest);
      svg.append(
        s("path", {
          class: "training",
          d: line()(kept.map(([size, value]) => [x(size), y(value)])),
        }),
      );
    }
    svg.append(
      s("path", {
        class: "band",
        d: area()
          .x((p) => p[0])
          .y0((p) => y(low[p[1]]))
          .y1((p) => y(high[p[1]]))(points),
      }),
    );
    svg.append(
      s("path", {
        class: "curve",
        d: line()
          .x((p) => p[0])
          .y((p) => y(curve.mean[p[1]]))(points),
      }),
    );
    for (const [at, i] of points)
      svg.append(
        s(
          "circle",
          { class: "dot", cx: at, cy: y(curve.mean[i]), r: points.length > 40 ? 1.8 : 2.6 },
          s(
            "title",
            {},
            `${curve.sizes[i]} features: ${name} ${num(curve.mean[i])} ± ${num(curve.error[i], 2)}`,
          ),
        ),
      );
    const at = x(curve.chosen);
    svg.append(s("line", { class: "chosen-line", x1: at, x2: at, y1: box.top, y2: box.bottom }));
    if (chosen >= 0)
      svg.append(s("circle", { class: "chosen-dot", cx: at, cy: y(curve.mean[chosen]), r: 5.5 }));
    const right = at < (box.left + box.right) / 2;
    svg.append(
      s(
        "text",
        { class: `note strong ${right ? "" : "end"}`, x: at + (right ? 6 : -6), y: box.top - 2 },
        `chosen: ${curve.chosen}`,
      ),
    );
    if (score && score.score === name) {
      const [cx, cy] = [at + (right ? 14 : -14), y(score.value)];
      const [from, to] = score.interval ?? [null, null];
      if (from !== null && to !== null) {
        const [first, last] = [from, to].map((v) => Math.min(box.bottom, Math.max(box.top, y(v))));
        svg.append(s("line", { class: "whisker", x1: cx, x2: cx, y1: first, y2: last }));
      }
      const range = from === null || to === null ? "" : ` (${num(from)} to ${num(to)})`;
      svg.append(
        s(
          "path",
          { class: "diamond", d: `M${cx},${cy - 6}l6,6l-6,6l-6,-6z` },
          s("title", {}, `whole procedure, held out: ${num(score.value)}${range}`),
        ),
      );
    }
    return svg;
  }

  function summary() {
    const best = curve.mean.indexOf(max(curve.mean));
    const words = `best ${fixed(curve.mean[best], 3)} with ${curve.sizes[best]}`;
    return `Held-out ${name} against the number of features: ${words}; ${curve.chosen} chosen.`;
  }
}

function ticksOf(sizes, x, wideRange) {
  if (wideRange)
    return [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000].filter(
      (t) => t >= x.domain()[0] && t <= x.domain()[1],
    );
  const [low, high] = x.domain();
  return x.ticks(6).filter((t) => Number.isInteger(t) && t >= low && t <= high);
}

function baselineName(score) {
  return score?.baseline && score.baseline !== "constant" ? score.baseline : "constant prediction";
}
