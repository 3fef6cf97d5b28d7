// The groups of each of several classes: those whose presence indicates it come before those whose
// absence does.

import { figure, h } from "../dom.js";
import { clipped, num, short, signedNum } from "../format.js";

const CLASSES = 60;
const [PRESENT, ABSENT] = [5, 3];

export function markersPicture(page) {
  const { data } = page;
  const shown = data.classes.slice(0, CLASSES);
  const some = shown.length < data.classes.length ? ` of ${num(data.classes.length)}` : "";
  return figure({
    title: "Groups of each class",
    caption:
      `Up to ${PRESENT} groups whose higher values make a class more likely, and up to ` +
      `${ABSENT} whose lower values do, the largest effects (log-odds per standard deviation) ` +
      `first. ${some ? `The first ${shown.length}${some} classes.` : ""}`,
    wide: true,
    className: "markers",
    draw: () => h("div", { class: "wide-table" }, table(page, shown)),
  });
}

function table(page, classes) {
  const heads = ["Class", "Higher values (presence)", "Lower values (absence)"];
  return h(
    "table",
    {},
    h("thead", {}, h("tr", {}, ...heads.map((name) => h("th", { scope: "col" }, name)))),
    h("tbody", {}, ...classes.map((name, c) => row(page, name, c))),
  );
}

function row(page, name, c) {
  const { data, groups } = page;
  const order = data.class_effects.map((_, g) => g);
  const effect = (g) => data.class_effects[g][c];
  const present = order.filter((g) => effect(g) > 0).sort((a, b) => effect(b) - effect(a));
  const absent = order.filter((g) => effect(g) < 0).sort((a, b) => effect(a) - effect(b));
  const names = (found, most) =>
    found
      .slice(0, most)
      .flatMap((g, i) => [
        i ? ", " : null,
        h(
          "span",
          { class: "unbroken" },
          h("bdi", { title: clipped(groups.label[g]) }, short(groups.label[g], 40)),
          ` ${signedNum(effect(g))}`,
        ),
      ]);
  return h(
    "tr",
    {},
    h("td", {}, h("bdi", { title: clipped(name) }, short(name, 32))),
    h("td", { class: "wrapped" }, ...(present.length ? names(present, PRESENT) : ["–"])),
    h("td", { class: "wrapped" }, ...(absent.length ? names(absent, ABSENT) : ["–"])),
  );
}
