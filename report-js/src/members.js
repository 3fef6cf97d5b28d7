// Content of an open row: all members of the group, and the support feature by class.

import { memberCell, memberHead, headline, writer } from "./columns.js";
import { h } from "./dom.js";
import { clipped, num, signedNum } from "./format.js";

const FIRST_MEMBERS = 100;
const MORE_MEMBERS = 1000;

export function openedRow(page, g, remeasure) {
  return h(
    "div",
    { class: "opened" },
    memberTable(page, g, remeasure),
    classTable(page, g),
    h("p", { class: "quiet" }, detailWords(page, g)),
  );
}

function memberTable(page, g, remeasure) {
  const { data, members } = page;
  const [start, end] = [members.start[g], members.start[g + 1]];
  const annotations = Object.keys(members.annotations);
  const list = h("tbody", {});
  let shown = 0;
  const more = h("button", {
    type: "button",
    onclick: () => {
      add(MORE_MEMBERS);
      requestAnimationFrame(remeasure);
    },
  });
  const add = (n) => {
    const until = Math.min(end, start + shown + n);
    for (let m = start + shown; m < until; m++)
      list.append(memberRow(page, m, m === start, annotations));
    shown = until - start;
    const next = Math.min(MORE_MEMBERS, end - start - shown);
    more.textContent = `show ${num(next)} more of ${num(end - start)}`;
    more.hidden = start + shown >= end;
  };
  add(FIRST_MEMBERS);
  const heads = [
    h("th", { scope: "col" }, "Feature"),
    data.member_columns.map(memberHead),
    annotations.map((name) => h("th", { scope: "col" }, clipped(name.replaceAll("_", " "), 30))),
  ];
  return h(
    "div",
    { class: "scroller", tabindex: "0", role: "region", "aria-label": `members of group ${g + 1}` },
    h("table", { class: "plain" }, h("thead", {}, h("tr", {}, heads)), list),
    more,
  );
}

function memberRow(page, m, isSupport, annotations) {
  const { data, members } = page;
  const tag = isSupport ? h("span", { class: "tag" }, "support") : null;
  return h(
    "tr",
    {},
    h("td", { class: "member-name" }, h("bdi", {}, clipped(page.memberName(m))), tag),
    data.member_columns.map((column) => memberCell(column, members[column.key], m)),
    annotations.map((name) =>
      h("td", {}, h("bdi", {}, annotationText(members.annotations[name][m]))),
    ),
  );
}

function annotationText(value) {
  if (value === null) return "";
  return typeof value === "number" ? num(value) : clipped(value, 60);
}

function classTable({ data }, g) {
  const statistics = data.statistics?.[g];
  if (!statistics || !data.classes) return null;
  const effects = data.class_effects?.[g];
  const known = statistics.some((own) => own && own.median !== undefined);
  const figures = known ? ["mean", "sd", "median"] : ["mean", "sd"];
  const number = (words) => h("td", { class: "n" }, words);
  const rows = data.classes.map(
    (name, c) =>
      statistics[c] &&
      h(
        "tr",
        {},
        h("td", {}, h("bdi", {}, clipped(name, 60))),
        ["n", ...figures].map((word) => number(num(statistics[c][word]))),
        effects ? number(signedNum(effects[c])) : null,
      ),
  );
  const heads = ["samples", ...figures, ...(effects ? ["effect"] : [])];
  return h(
    "div",
    { class: "scroller" },
    h(
      "table",
      { class: "plain" },
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          h("th", { scope: "col" }, "Support feature in"),
          heads.map((word) => h("th", { scope: "col", class: "n" }, word)),
        ),
      ),
      h("tbody", {}, rows),
    ),
  );
}

function detailWords({ data, groups }, g) {
  const known = data.details.filter((column) => groups[column.key][g] !== null);
  return known
    .map(
      (column) =>
        `${headline(column)}: ${writer(column, groups[column.key])(groups[column.key][g])}.`,
    )
    .join(" ");
}
