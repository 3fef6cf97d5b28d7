// The table of groups with search, filters and download.

import { tableColumn } from "./columns.js";
import { download, toCsv } from "./csv.js";
import { h } from "./dom.js";
import { clipped, count, fixed, num } from "./format.js";
import { openedRow } from "./members.js";
import { Table } from "./table.js";

export function groupTable(page) {
  const { data, groups } = page;
  const table = new Table({
    columns: [
      {
        key: "open",
        title: "open",
        hideTitle: true,
        className: "open-cell",
        show: (g) => opener(page, table, g),
      },
      ...data.columns.map((column) =>
        tableColumn(column, groups[column.key], data.orders[column.key]),
      ),
    ],
    n: groups.n,
    open: (g) => openedRow(page, g, () => table.remeasure()),
    onChoose: (g) => page.select(g),
    rowClass: (g) => (g === page.selected ? "chosen-row" : ""),
    caption: "Groups of features",
  });
  table.node.classList.add("of-groups");
  page.onSelect((g) => {
    table.body.querySelector(".chosen-row")?.classList.remove("chosen-row");
    table.body.querySelector(`tr[data-row="${g}"]`)?.classList.add("chosen-row");
  });
  table.node.addEventListener("focusin", (event) => {
    const row = event.target.closest("tr[data-row]");
    if (row) page.select(Number(row.dataset.row));
  });
  const words =
    groups.n > 200 ? "Printed: the first 200 groups of the table. groups.csv has all groups." : "";
  return [controls(page, table), table.node, h("p", { class: "print-only quiet" }, words)];
}

function opener(page, table, g) {
  const onclick = (event) => {
    event.stopPropagation();
    table.toggle(g);
  };
  const label = `members of group ${g + 1}, ${clipped(page.groups.label[g], 60)}`;
  return h(
    "button",
    {
      type: "button",
      class: "opener",
      "aria-expanded": String(table.opened.has(g)),
      "aria-label": label,
      onclick,
    },
    h("span", { "aria-hidden": "true" }, "›"),
  );
}

function controls(page, table) {
  const { data, groups } = page;
  const known = groups.confidence.some((value) => value !== null);
  const search = h("input", {
    type: "search",
    id: "search",
    placeholder: "name of a feature",
    autocomplete: "off",
    spellcheck: "false",
  });
  const least = h("input", { type: "range", id: "least", min: 0, max: 1, step: 0.01, value: 0 });
  const leastText = h("output", { for: "least", id: "least-text" }, "0.00");
  const told = h("p", { id: "count", role: "status" });
  const save = h(
    "button",
    {
      type: "button",
      id: "csv",
      onclick: () => download(`${data.stem}-groups.csv`, csvOf(page, table.order)),
    },
    "Download as CSV",
  );
  let texts = null;
  const filter = () => {
    const wanted = search.value.trim().toLowerCase();
    const lowest = known ? Number(least.value) : 0;
    leastText.value = fixed(lowest);
    if (wanted && !texts) texts = searchTexts(page);
    const rows = [];
    for (let g = 0; g < groups.n; g++) {
      if (lowest > 0 && (groups.confidence[g] ?? 1) < lowest - 1e-9) continue;
      if (wanted && !texts[g].includes(wanted)) continue;
      rows.push(g);
    }
    const features = rows.reduce((sum, g) => sum + groups.size[g], 0);
    const all = count(groups.n, "group");
    const shown = rows.length === groups.n ? all : `${num(rows.length)} of ${all}`;
    told.textContent = `${shown}, ${count(features, "feature")}`;
    table.setRows(rows);
  };
  let waiting = 0;
  search.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(filter, groups.n > 2000 ? 150 : 30);
  });
  least.addEventListener("input", filter);
  requestAnimationFrame(filter);
  return h(
    "div",
    { class: "controls" },
    h("label", { for: "search" }, "Search", search),
    known ? h("label", { for: "least" }, "Confidence at least ", leastText, least) : null,
    told,
    save,
  );
}

function searchTexts(page) {
  const { groups, members } = page;
  const texts = [];
  for (let g = 0; g < groups.n; g++) {
    const names = [];
    for (let m = members.start[g]; m < members.start[g + 1]; m++) names.push(page.memberName(m));
    texts.push(names.join("\n").toLowerCase());
  }
  return texts;
}

function csvOf(page, rows) {
  const { data, members } = page;
  const annotations = Object.keys(members.annotations);
  const classes = data.class_effects && data.classes?.length > 2 ? data.classes : [];
  const names = data.target_effects ? data.targets : classes;
  const heads = [
    ...data.download.map((column) => column.name),
    ...annotations,
    ...names.map((name) => `effect[${name}]`),
  ];
  const lines = [];
  for (const g of rows) {
    for (let m = members.start[g]; m < members.start[g + 1]; m++) {
      const own = data.target_effects ?? data.class_effects;
      const effects = m === members.start[g] ? own?.[g] : null;
      lines.push([
        ...data.download.map((column) => savedValue(page, column, g, m)),
        ...annotations.map((name) => members.annotations[name][m]),
        ...names.map((_, c) => effects?.[c]),
      ]);
    }
  }
  return toCsv(heads, lines);
}

function savedValue({ groups, members }, { name, per }, g, m) {
  const isSupport = m === members.start[g];
  // Computed here, because it would be the largest column of the data.
  if (name === "role") return isSupport ? "support" : "affiliated";
  if (per === "feature") return members[name]?.[m];
  return per === "group" || isSupport ? groups[name][g] : null;
}
