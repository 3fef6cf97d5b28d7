// The group under the pointer: what it says, how its members hang together, and its support feature in the data.

import { h } from "./dom.js";
import { clipped, count, fixed, num, short, signedNum } from "./format.js";
import { placeWords } from "./pictures/genome.js";
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
  const node = h("section", { class: "figure wide chosen", "aria-labelledby": "chosen-title" },
    h("div", { class: "chosen-head" }, h("div", {}, title, facts),
      h("div", { class: "steps" }, h("button", { type: "button", "aria-label": "previous group", onclick: step(-1) }, "‹"), h("button", { type: "button", "aria-label": "next group", onclick: step(1) }, "›"))),
    pair = h("div", { class: "pair" },
      h("div", {}, h("h4", {}, "Correlations between its members"), heat),
      h("div", {}, h("h4", {}, data.classes ? "Its support feature, by class" : data.task === "regression" ? `Its support feature against ${data.label ? short(data.label, 40) : "the target"}` : "Its support feature"), values)),
    live);
  let drawn = null;
  const draw = () => {
    const g = page.selected;
    pair.classList.toggle("single", groups.size[g] === 1);
    title.replaceChildren(`Group ${g + 1}: `, h("bdi", {}, clipped(groups.name[g], 120)));
    const words = [
      groups.direction[g], `effect ${signedNum(groups.effect[g])}`,
      groups.confidence[g] === null ? null : `confidence ${fixed(groups.confidence[g])}`,
      data.chance && groups.expected_false?.[g] !== null && groups.expected_false ? `${num(groups.expected_false[g], 2)} such groups expected by chance` : null,
      count(groups.size[g], "feature"), placeWords(page, page.members.start[g]),
    ].filter(Boolean);
    facts.replaceChildren(words.join(" · "));
    heat.replaceChildren(...[heatMap(page, g, heat.clientWidth || 400)].flat().filter(Boolean));
    values.replaceChildren(...[valuesPicture(page, g, values.clientWidth || 400)].flat().filter(Boolean));
    drawn = [g, heat.clientWidth];
  };
  let asked = 0;
  page.onSelect((g, announce) => {
    cancelAnimationFrame(asked);
    asked = requestAnimationFrame(draw);
    if (announce) live.textContent = `Group ${g + 1}, ${clipped(groups.name[g], 80)}${groups.direction[g] ? `, ${groups.direction[g]}` : ""}`;
  });
  new ResizeObserver(() => {
    if (drawn && Math.abs(heat.clientWidth - drawn[1]) > 1 && !matchMedia("print").matches) draw();
  }).observe(heat);
  return { node, redraw: draw };
}
