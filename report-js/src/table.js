// A virtualised table: only visible rows are in the page. Closed rows have the same height, open
// rows their own.

import { bisectLeft } from "d3-array";
import { h } from "./dom.js";

const SPARE = 12;
// Number of rows in the page when printing.
const PRINTED = 200;

export class Table {
  // columns: [{ key, title, value(row), show(row), numeric, className, width }];
  // open(row): content of an open row.
  constructor({ columns, n, open, onChoose, rowClass, caption }) {
    Object.assign(this, { columns, open, onChoose, rowClass });
    this.order = Array.from({ length: n }, (_, i) => i);
    this.sorted = { key: null, down: false };
    this.heights = new Map(); // heights of open rows, by row
    this.opened = new Set();
    this.rowHeight = 0;
    this.head = h(
      "thead",
      {},
      h(
        "tr",
        {},
        columns.map((column) => this.headCell(column)),
      ),
    );
    this.body = h("tbody", {});
    this.node = h(
      "table",
      { class: "windowed", "aria-rowcount": n + 1 },
      h("caption", { class: "visually-hidden" }, caption),
      this.head,
      this.body,
    );
    this.range = [-1, -1];
    let frame = 0;
    const later = () => {
      cancelAnimationFrame(frame);
      frame = requestAnimationFrame(() => this.draw());
    };
    addEventListener("scroll", later, { passive: true });
    addEventListener("resize", () => {
      this.rowHeight = 0;
      this.heights.clear();
      this.range = [-1, -1];
      later();
    });
    addEventListener("beforeprint", () => this.draw(true));
    addEventListener("afterprint", () => {
      this.range = [-1, -1];
      this.draw();
    });
  }

  headCell(column) {
    if (!column.value)
      return h(
        "th",
        { scope: "col", class: column.className },
        h("span", { class: column.hideTitle ? "visually-hidden" : "" }, column.title),
      );
    const button = h(
      "button",
      { type: "button", class: "sort", title: column.hint, onclick: () => this.sortBy(column.key) },
      column.title,
      h("span", { class: "arrow", "aria-hidden": "true" }),
    );
    return h(
      "th",
      {
        scope: "col",
        class: `${column.className ?? ""} ${column.numeric ? "n" : ""}`,
        "data-key": column.key,
        style: column.width ? { width: column.width } : undefined,
      },
      button,
    );
  }

  setRows(rows) {
    this.order = rows;
    this.node.setAttribute("aria-rowcount", rows.length + 1);
    this.sort();
    this.refresh();
  }

  sortBy(key, down) {
    const same = this.sorted.key === key;
    const first = this.columns.find((column) => column.key === key).numeric ? true : false;
    this.sorted = { key, down: down ?? (same ? !this.sorted.down : first) };
    for (const cell of this.head.querySelectorAll("th[data-key]")) {
      if (cell.dataset.key === key)
        cell.setAttribute("aria-sort", this.sorted.down ? "descending" : "ascending");
      else cell.removeAttribute("aria-sort");
    }
    this.sort();
    this.refresh();
  }

  sort() {
    const column = this.columns.find((c) => c.key === this.sorted.key);
    if (!column) return;
    const values = new Map(this.order.map((row) => [row, column.value(row)]));
    const sign = this.sorted.down ? -1 : 1;
    const collator = new Intl.Collator("en", { numeric: true });
    this.order = [...this.order].sort((a, b) => {
      const [x, y] = [values.get(a), values.get(b)];
      if (x === null || x === undefined || y === null || y === undefined)
        return (x === null || x === undefined) - (y === null || y === undefined) || a - b;
      return sign * (typeof x === "string" ? collator.compare(x, y) : x - y) || a - b;
    });
  }

  toggle(row) {
    if (!this.opened.delete(row)) this.opened.add(row);
    else this.heights.delete(row);
    this.refresh();
  }

  refresh() {
    this.range = [-1, -1];
    this.draw();
  }

  // Positions of the open rows in the current order, and the cumulative height they add.
  extras() {
    const places = [];
    if (this.opened.size) this.order.forEach((row, i) => this.opened.has(row) && places.push(i));
    return places;
  }

  draw(everything = false) {
    const n = this.order.length;
    if (!this.rowHeight) this.measure();
    const open = this.extras();
    const tall = (i) => this.heights.get(this.order[i]) ?? 220;
    const above = [0];
    open.forEach((i) => above.push(above[above.length - 1] + tall(i)));
    const offset = (i) => i * this.rowHeight + above[bisectLeft(open, i)];
    const total = n * this.rowHeight + above[above.length - 1];
    let [first, last] = [0, Math.min(n, PRINTED)];
    if (!everything) {
      const top = -this.body.getBoundingClientRect().top;
      const bottom = top + innerHeight;
      const at = (pixel) => {
        let [low, high] = [0, n];
        while (low < high) {
          const middle = (low + high) >> 1;
          if (offset(middle) < pixel) low = middle + 1;
          else high = middle;
        }
        return low;
      };
      first = Math.max(0, at(top) - SPARE);
      last = Math.min(n, Math.max(at(bottom) + SPARE, first + 2 * SPARE));
    }
    if (first === this.range[0] && last === this.range[1] && !everything) return;
    this.range = [first, last];
    const focused = this.body.contains(document.activeElement)
      ? document.activeElement.closest("tr")?.dataset.row
      : undefined;
    const rows = [this.gap(everything ? 0 : offset(first))];
    for (let i = first; i < last; i++) rows.push(...this.row(this.order[i], i));
    rows.push(this.gap(everything ? 0 : total - offset(last)));
    this.body.replaceChildren(...rows.filter(Boolean));
    if (focused !== undefined)
      this.body.querySelector(`tr[data-row="${focused}"] button`)?.focus({ preventScroll: true });
    this.remeasure();
  }

  gap(height) {
    return height > 0
      ? h(
          "tr",
          { class: "gap", "aria-hidden": "true", style: { height: `${height}px` } },
          h("td", { colspan: this.columns.length }),
        )
      : null;
  }

  row(row, i) {
    const cells = this.columns.map((column) => {
      const content = [column.show(row)].flat();
      return h("td", { class: `${column.className ?? ""} ${column.numeric ? "n" : ""}` }, content);
    });
    const isOpen = this.opened.has(row);
    const line = h(
      "tr",
      {
        "data-row": row,
        "aria-rowindex": i + 2,
        class: `${this.rowClass?.(row) ?? ""} ${isOpen ? "open" : ""}`,
        onpointerenter: () => this.onChoose?.(row),
      },
      cells,
    );
    if (!isOpen) return [line];
    return [
      line,
      h(
        "tr",
        { class: "details", "data-details": row },
        h("td", { colspan: this.columns.length }, this.open(row)),
      ),
    ];
  }

  // Height of a closed row at this width.
  measure() {
    const [sample] = this.order.length
      ? this.row(this.order[0], 0)
      : [h("tr", {}, h("td", {}, "–"))];
    this.body.replaceChildren(sample);
    this.rowHeight = Math.max(20, sample.getBoundingClientRect().height);
    this.range = [-1, -1];
  }

  // The height of an open row is known once it is in the page.
  remeasure() {
    let changed = false;
    for (const node of this.body.querySelectorAll("tr.details")) {
      const row = Number(node.dataset.details);
      const height = node.getBoundingClientRect().height;
      if (Math.abs((this.heights.get(row) ?? -1) - height) > 1) {
        this.heights.set(row, height);
        changed = true;
      }
    }
    if (changed) this.range = [-1, -1];
  }
}
