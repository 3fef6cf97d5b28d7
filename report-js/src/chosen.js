// The selected group: description, correlations between its members, and values of its support
// feature.

import { writer } from "./columns.js";
import { h } from "./dom.js";
import { clipped, short } from "./format.js";
import { heatMap } from "./pictures/heat.js";
import { valuesPicture } from "./pictures/values.js";

export function chosenPanel(page) {
  const { data, groups } = page;
  const title = h("h3", { id: "chosen-title" });
  const facts = h("p", { class: "facts" });
  const heat = h("div", { class: "canvas" });
  const values = h("div", { class: "canvas" });
  const live = h("p", { class: "visually-hidden", "aria-live": "polite" });
  const step = (by) => () => page.select((page.selected + by + groups.n) % groups.n, true);
  let pair = null;
  const node = h(
    "section",
    { class: "figure wide chosen", "aria-labelledby": "chosen-title" },
    h(
      "div",
      { class: "chosen-head" },
      h("div", {}, title, facts),
      h(
        "div",
        { class: "steps" },
        h("button", { type: "button", "aria-label": "previous group", onclick: step(-1) }, "‹"),
        h("button", { type: "button", "aria-label": "next group", onclick: step(1) }, "›"),
      ),
    ),
    (pair = h(
      "div",
      { class: "pair" },
      h("div", {}, h("h4", {}, "Correlations between members"), heat),
      h(
        "div",
        {},
        h(
          "h4",
          {},
          data.classes
            ? "Support feature by class"
            : data.task === "regression"
              ? `Support feature against ${data.label ? short(data.label, 40) : "the target"}`
              : "Support feature",
        ),
        values,
      ),
    )),
    live,
  );
  // Of survival times and several targets, and of confidential data, no values are stored.
  const hasValues = Boolean(data.values || (data.classes && (data.statistics || data.levels)));
  pair.lastElementChild.hidden = !hasValues;
  let drawn = null;
  const draw = () => {
    const g = page.selected;
    pair.classList.toggle("single", groups.size[g] === 1 && hasValues);
    pair.classList.toggle("alone", !hasValues);
    title.replaceChildren(`Group ${g + 1}: `, h("bdi", {}, clipped(groups.label[g], 120)));
    const words = data.columns
      .filter(({ key, kind }) => key !== "group" && kind !== "name" && groups[key][g] !== null)
      .map((column) => {
        const text = writer(column, groups[column.key])(groups[column.key][g]);
        return column.kind === "text" ? text : `${column.title} ${text}`;
      });
    facts.replaceChildren(words.join(" · "));
    heat.replaceChildren(...[heatMap(page, g, heat.clientWidth || 400)].flat().filter(Boolean));
    values.replaceChildren(
      ...[valuesPicture(page, g, values.clientWidth || 400)].flat().filter(Boolean),
    );
    drawn = [g, heat.clientWidth];
  };
  let frame = 0;
  page.onSelect((g, announce) => {
    cancelAnimationFrame(frame);
    frame = requestAnimationFrame(draw);
    if (announce)
      live.textContent = [`Group ${g + 1}`, clipped(groups.label[g], 80), groups.direction[g]]
        .filter(Boolean)
        .join(", ");
  });
  new ResizeObserver(() => {
    if (drawn && Math.abs(heat.clientWidth - drawn[1]) > 1 && !matchMedia("print").matches) draw();
  }).observe(heat);
  return { node, redraw: draw };
}
