// The page of a discovery: pictures, the chosen group, and the table of groups.

import { max } from "d3-array";
import { chosenPanel } from "./chosen.js";
import { download, toCsv } from "./csv.js";
import { byId, h } from "./dom.js";
import { clipped, count, fixed, num, signed, signedNum, visible } from "./format.js";
import { classesPicture } from "./pictures/classes.js";
import { genomePicture } from "./pictures/genome.js";
import { groupsPicture } from "./pictures/groups.js";
import { pixelPicture } from "./pictures/pixels.js";
import { scorePicture } from "./pictures/score.js";
import { Table } from "./table.js";

const FIRST_MEMBERS = 100;

// What all parts of the page share: the data, and which group is chosen.
class Page {
  constructor(data) {
    this.data = data;
    this.groups = data.groups;
    this.members = data.members;
    this.selected = data.groups.n ? 0 : null;
    this.listeners = [];
  }

  onSelect(listener) {
    this.listeners.push(listener);
  }

  select(g, announce = false) {
    if (g === this.selected) return;
    this.selected = g;
    for (const listener of this.listeners) listener(g, announce);
  }

  memberName(m) {
    return this.members.name ? this.members.name[m] : `feature ${this.members.feature[m]}`;
  }

  annotationsOf(...names) {
    return Object.fromEntries(names.map((name) => [name, this.members.annotations?.[name]]));
  }
}

export function discoveryPage(data) {
  const page = new Page(data);
  const pictures = byId("pictures");
  const made = [];
  if (data.curve && data.curve.sizes.length > 1) made.push(scorePicture(data));
  if (page.groups.n) made.push(groupsPicture(page));
  if (data.image && page.groups.n) made.push(pixelPicture(page));
  if (data.genome && page.groups.n) made.push(genomePicture(page));
  if (data.class_effects && data.classes?.length > 2 && page.groups.n) made.push(classesPicture(page));
  if (page.groups.n) made.push(chosenPanel(page));
  const small = made.filter((part) => !part.node.classList.contains("wide"));
  if (small.length === 1) small[0].node.classList.add("alone");
  pictures.replaceChildren(...made.map((part) => part.node));
  for (const part of made) part.redraw();
  if (page.groups.n) byId("groups").replaceChildren(...groupTable(page));
  else byId("groups").replaceChildren(h("p", {}, "There are no groups."));
}

function groupTable(page) {
  const { data, groups, members } = page;
  const largest = max(groups.effect, Math.abs) || 1;
  const signs = groups.effect.some((value) => value < 0);
  const places = largest >= 100 || largest < 1e-4 ? null : Math.max(1, 2 - Math.floor(Math.log10(largest * 1.005))); // as many decimals for all
  const effectText = (g) => (groups.effect[g] !== null && places !== null ? signed(groups.effect[g], places) : signedNum(groups.effect[g]));
  const known = groups.confidence.some((value) => value !== null);
  const shuffled = data.chance && groups.expected_false;
  const columns = [
    { key: "open", title: "open", hideTitle: true, className: "open-cell", show: (g) => h("button", { type: "button", class: "opener", "aria-expanded": String(table.opened.has(g)), "aria-label": `members of group ${g + 1}, ${clipped(groups.name[g], 60)}`, onclick: (event) => { event.stopPropagation(); table.toggle(g); } }, h("span", { "aria-hidden": "true" }, "›")) },
    { key: "number", title: "#", numeric: true, className: "number", value: (g) => g + 1, show: (g) => num(g + 1) },
    { key: "name", title: "Support feature", className: "name", value: (g) => visible(groups.name[g]), show: (g) => h("bdi", { title: clipped(groups.name[g]) }, clipped(groups.name[g])) },
  ];
  if (members.annotations?.chromosome) columns.push({ key: "place", title: "Place", className: "place", value: (g) => `${members.annotations.chromosome[members.start[g]]}:${String(members.annotations.position?.[members.start[g]] ?? "").padStart(12, "0")}`, show: (g) => placeOf(page, members.start[g]) });
  if (groups.direction.some(Boolean)) columns.push({ key: "direction", title: "Direction", className: "direction", width: `${Math.min(17, 2.6 + 0.5 * max(groups.direction, (words) => (words ?? "").length))}rem`, value: (g) => groups.direction[g], show: (g) => h("bdi", { title: clipped(groups.direction[g] ?? "") }, clipped(groups.direction[g] ?? "", 80)) });
  columns.push({ key: "effect", title: "Effect", hint: "weight on the standardised feature; sorted by its size", numeric: true, className: "effect", value: (g) => (groups.effect[g] === null ? null : Math.abs(groups.effect[g])), show: (g) => [effectBar(groups.effect[g], largest, signs), h("span", { class: "figure-text" }, effectText(g))] });
  if (known) columns.push({ key: "confidence", title: "Confidence", hint: "share of half-samples in which any member of the group is chosen", numeric: true, className: "confidence", value: (g) => groups.confidence[g], show: (g) => (groups.confidence[g] === null ? "fixed" : [h("span", { class: "bar-track", "aria-hidden": "true" }, h("span", { class: "bar-fill", style: { width: `${100 * groups.confidence[g]}%` } })), h("span", { class: "figure-text" }, fixed(groups.confidence[g]))]) });
  if (shuffled) columns.push({ key: "chance", title: "By chance", hint: "how many groups reach this confidence when the labels are shuffled, on average", numeric: true, className: "by-chance", value: (g) => groups.expected_false[g], show: (g) => num(groups.expected_false[g], 2) });
  columns.push({ key: "size", title: "Features", numeric: true, className: "size", value: (g) => groups.size[g], show: (g) => num(groups.size[g]) });

  const table = new Table({
    columns, n: groups.n, open: (g) => members_of(page, g, table), onChoose: (g) => page.select(g),
    rowClass: (g) => (g === page.selected ? "chosen-row" : ""), caption: "Groups of features",
  });
  page.onSelect((g) => {
    table.body.querySelector(".chosen-row")?.classList.remove("chosen-row");
    table.body.querySelector(`tr[data-row="${g}"]`)?.classList.add("chosen-row");
  });
  table.node.addEventListener("focusin", (event) => {
    const row = event.target.closest("tr[data-row]");
    if (row) page.select(Number(row.dataset.row));
  });

  const search = h("input", { type: "search", id: "search", placeholder: "name of a feature", autocomplete: "off", spellcheck: "false" });
  const least = h("input", { type: "range", id: "least", min: 0, max: 1, step: 0.01, value: 0 });
  const leastText = h("output", { for: "least", id: "least-text" }, "0.00");
  const told = h("p", { id: "count", role: "status" });
  const save = h("button", { type: "button", id: "csv", onclick: () => download(`${data.stem}-groups.csv`, csvOf(page, table.order)) }, "Download as CSV");
  let texts = null;
  const filter = () => {
    const wanted = search.value.trim().toLowerCase();
    const lowest = known ? Number(least.value) : 0;
    leastText.value = fixed(lowest);
    if (wanted && !texts) texts = searchTexts(page);
    const rows = [];
    for (let g = 0; g < groups.n; g++) {
      if (known && lowest > 0 && !((groups.confidence[g] ?? 1) >= lowest - 1e-9)) continue;
      if (wanted && !texts[g].includes(wanted)) continue;
      rows.push(g);
    }
    const features = rows.reduce((sum, g) => sum + groups.size[g], 0);
    told.textContent = `${rows.length === groups.n ? count(rows.length, "group") : `${num(rows.length)} of ${count(groups.n, "group")}`}, ${count(features, "feature")}`;
    table.setRows(rows);
  };
  let waiting = 0;
  search.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(filter, groups.n > 2000 ? 150 : 30);
  });
  least.addEventListener("input", filter);
  const controls = h("div", { class: "controls" },
    h("label", { for: "search" }, "Search", search),
    known ? h("label", { for: "least" }, "Confidence at least ", leastText, least) : null,
    told, save);
  requestAnimationFrame(filter);
  const unprinted = h("p", { class: "print-only quiet" }, groups.n > 200 ? "On paper: the first 200 groups of the table; all are in groups.csv." : "");
  return [controls, table.node, unprinted];
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

function placeOf(page, m) {
  const { chromosome, position, allele_1, allele_2 } = page.annotationsOf("chromosome", "position", "allele_1", "allele_2");
  const alleles = allele_1 && allele_2 ? ` ${clipped(allele_1[m], 12)}/${clipped(allele_2[m], 12)}` : "";
  return h("bdi", {}, `${clipped(chromosome[m], 12)}${position ? `:${num(position[m])}` : ""}${alleles}`);
}

function effectBar(value, largest, signs) {
  if (value === null) return null;
  const share = Math.abs(value) / largest;
  const style = signs ? { width: `${50 * share}%`, left: value < 0 ? `${50 - 50 * share}%` : "50%" } : { width: `${100 * share}%`, left: "0" };
  return h("span", { class: `effect-track ${signs ? "two-sided" : ""}`, "aria-hidden": "true" }, h("span", { class: `effect-fill ${value < 0 ? "less" : "more"}`, style }));
}

// What an opened row shows: all members with their correlations, and the support feature in figures.
function members_of(page, g, table) {
  const { data, groups, members } = page;
  const [start, end] = [members.start[g], members.start[g + 1]];
  const annotations = Object.keys(members.annotations ?? {});
  const shares = members.share;
  const list = h("tbody", {});
  let shown = 0;
  const more = h("button", { type: "button", onclick: () => { add(1000); requestAnimationFrame(() => table.remeasure()); } });
  const add = (n) => {
    const until = Math.min(end, start + shown + n);
    for (let m = start + shown; m < until; m++) {
      list.append(h("tr", {},
        h("td", { class: "member-name" }, h("bdi", {}, clipped(page.memberName(m))), m === start ? h("span", { class: "tag" }, "support") : null),
        h("td", { class: "n" }, m === start ? "1" : signed(members.correlation[m])),
        shares ? h("td", { class: "n" }, fixed(shares[m])) : null,
        annotations.map((name) => h("td", {}, h("bdi", {}, members.annotations[name][m] === null ? "" : typeof members.annotations[name][m] === "number" ? num(members.annotations[name][m]) : clipped(members.annotations[name][m], 60))))));
    }
    shown = until - start;
    more.textContent = `show ${num(Math.min(1000, end - start - shown))} more of ${num(end - start)}`;
    more.hidden = start + shown >= end;
  };
  add(FIRST_MEMBERS);
  const statistics = data.statistics?.[g];
  return h("div", { class: "opened" },
    h("div", { class: "scroller", tabindex: "0", role: "region", "aria-label": `members of group ${g + 1}` },
      h("table", { class: "plain" }, h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Feature"), h("th", { scope: "col", class: "n" }, "Correlation"), shares ? h("th", { scope: "col", class: "n", title: "share of half-samples that choose this very feature" }, "Chosen") : null, annotations.map((name) => h("th", { scope: "col" }, clipped(name.replaceAll("_", " "), 30))))), list), more),
    statistics && data.classes ? h("div", { class: "scroller" }, h("table", { class: "plain" },
      h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Support feature in"), h("th", { scope: "col", class: "n" }, "samples"), h("th", { scope: "col", class: "n" }, "mean"), h("th", { scope: "col", class: "n" }, "sd"), h("th", { scope: "col", class: "n" }, "median"), data.class_effects?.[g] ? h("th", { scope: "col", class: "n" }, "effect") : null)),
      h("tbody", {}, data.classes.map((name, c) => statistics[c] ? h("tr", {}, h("td", {}, h("bdi", {}, clipped(name, 60))), h("td", { class: "n" }, num(statistics[c].n)), h("td", { class: "n" }, num(statistics[c].mean)), h("td", { class: "n" }, num(statistics[c].sd)), h("td", { class: "n" }, num(statistics[c].median)), data.class_effects?.[g] ? h("td", { class: "n" }, signedNum(data.class_effects[g][c])) : null) : null)))) : null,
    h("p", { class: "quiet" }, [groups.purity[g] === null ? null : `Smallest correlation between members: ${fixed(groups.purity[g])}.`, `Chosen in round ${num(groups.round[g])}.`, groups.false_share?.[g] !== null && groups.false_share ? `Estimated share of false groups at this confidence: ${num(groups.false_share[g], 2)}.` : null].filter(Boolean).join(" ")));
}

function csvOf(page, rows) {
  const { data, groups, members } = page;
  const annotations = Object.keys(members.annotations ?? {});
  const effects = data.class_effects && data.classes?.length > 2 ? data.classes : [];
  const columns = ["group", "feature", "name", "role", "correlation", "share", "effect", "direction", "confidence", "expected_false", ...annotations, ...effects.map((name) => `effect[${name}]`)];
  const lines = [];
  for (const g of rows) {
    for (let m = members.start[g]; m < members.start[g + 1]; m++) {
      const support = m === members.start[g];
      lines.push([g + 1, members.feature[m], members.name ? members.name[m] : null, support ? "support" : "affiliated", support ? 1 : members.correlation[m], members.share ? members.share[m] : null, support ? groups.effect[g] : null, support ? groups.direction[g] : null, groups.confidence[g], groups.expected_false ? groups.expected_false[g] : null, ...annotations.map((name) => members.annotations[name][m]), ...effects.map((_, c) => (support ? data.class_effects[g]?.[c] : null))]);
    }
  }
  return toCsv(columns, lines);
}
