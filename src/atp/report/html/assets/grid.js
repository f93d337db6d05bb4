// A table of any length: only the rows near the window are in the page. All rows have one height.

const AROUND = 12;
const ALWAYS = 100; // so many rows are all in the page, where the browser's own search finds them
const MOST_PRINTED = 2000;

class Grid {
  /** `columns`: `{name, label, sort?, class?, cell(row)}`; the first cell of a row holds the link that opens it. */
  constructor({ label, columns, height = 48 }) {
    this.columns = columns;
    this.height = height;
    this.rows = [];
    this.current = null; // the row that last had the focus: scrolling may take it out of the page
    this.made = new Map();
    this.body = h("tbody");
    // One cell each: a wider one would bring back the columns that a narrow window leaves out.
    this.above = h("tr", { class: "pad", "aria-hidden": "true" }, h("td"));
    this.below = h("tr", { class: "pad", "aria-hidden": "true" }, h("td"));
    this.heads = columns.map((column) => this.head(column));
    this.element = h(
      "table",
      { class: "grid", style: { "--row": `${height}px` } },
      h("caption", { class: "away" }, label),
      h("thead", null, h("tr", null, this.heads)),
      this.body,
    );
    this.draw = this.draw.bind(this);
    this.gone = new AbortController();
    const until = { passive: true, signal: this.gone.signal };
    addEventListener("scroll", this.draw, until);
    addEventListener("resize", this.draw, until);
    addEventListener("beforeprint", () => this.element.isConnected && this.render(0, Math.min(this.rows.length, MOST_PRINTED)), until);
    addEventListener("afterprint", this.draw, until);
  }

  /** Let go of the window. */
  close() {
    this.gone.abort();
  }

  head(column) {
    const button = column.sort ? h("button", { type: "button", on: { click: () => this.sort(column) } }, column.label) : column.label;
    return h("th", { scope: "col", class: column.class }, button);
  }

  sort(column) {
    const by = state().sort;
    const [first, second] = column.downFirst ? [`-${column.sort}`, column.sort] : [column.sort, `-${column.sort}`];
    amend({ sort: by === first ? second : by === second ? "" : first });
    render();
  }

  /** Show these rows. `grown`: the address is the same as before, so that rows that are still at their place stay. */
  show(rows, grown = false) {
    const focused = this.active === null ? -1 : rows.indexOf(this.rows[this.active]);
    for (const place of this.made.keys()) if (!grown || rows[place] !== this.rows[place]) this.made.delete(place);
    this.rows = rows;
    if (!grown) {
      this.current = null;
      this.body.replaceChildren();
    }
    this.element.setAttribute("aria-rowcount", String(rows.length + 1));
    const by = state().sort;
    this.columns.forEach((column, place) => {
      const direction = by === column.sort ? "ascending" : by === `-${column.sort}` ? "descending" : null;
      if (column.sort && direction) this.heads[place].setAttribute("aria-sort", direction);
      else this.heads[place].removeAttribute("aria-sort");
    });
    this.draw();
    if (focused >= 0) this.focus(focused);
  }

  /** Put the rows near the window into the page. */
  draw() {
    if (!this.element.isConnected) return;
    if (this.rows.length <= ALWAYS) return this.render(0, this.rows.length);
    const top = this.body.getBoundingClientRect().top;
    const first = Math.floor(-top / this.height) - AROUND;
    const last = first + Math.ceil(innerHeight / this.height) + 2 * AROUND;
    this.render(Math.max(0, Math.min(first, this.rows.length)), Math.max(0, Math.min(last, this.rows.length)));
  }

  render(from, to) {
    const kept = new Map();
    for (let place = from; place < to; place++) kept.set(place, this.made.get(place) ?? this.row(place));
    this.made = kept;
    this.above.firstChild.style.height = `${from * this.height}px`;
    this.below.firstChild.style.height = `${(this.rows.length - to) * this.height}px`;
    const wanted = [this.above, ...kept.values(), this.below];
    const now = this.body.children;
    if (now.length === wanted.length && wanted.every((one, place) => now[place] === one)) return;
    // Rows that stay are not taken out of the page, or the one with the focus would lose it.
    const stay = new Set(wanted);
    for (const one of [...now]) if (!stay.has(one)) one.remove();
    wanted.forEach((one, place) => now[place] !== one && this.body.insertBefore(one, now[place] ?? null));
  }

  row(place) {
    const row = this.rows[place];
    const cells = this.columns.map((column, number) => h(number ? "td" : "th", { scope: number ? null : "row", class: column.class }, column.cell(row)));
    const open = (event) => {
      if (event.target.closest("a, button, input") || String(getSelection())) return;
      event.currentTarget.querySelector("a.open")?.click();
    };
    return h("tr", { class: `row is-${row.status}`, "aria-rowindex": place + 2, "data-place": place, on: { click: open } }, cells);
  }

  /** Give the next row the focus, or the one before; the first if none has had it. */
  move(step) {
    const place = this.active ?? (this.current ? this.rows.indexOf(this.current) : -1);
    this.focus(place < 0 ? 0 : place + step);
  }

  /** The row with the focus, or nothing. */
  get active() {
    const row = document.activeElement?.closest?.("tr.row");
    return row && this.body.contains(row) ? Number(row.dataset.place) : null;
  }

  /** Give a row the focus, wherever it is. */
  focus(place) {
    if (!this.rows.length) return;
    const wanted = Math.max(0, Math.min(place, this.rows.length - 1));
    this.current = this.rows[wanted];
    const top = this.body.getBoundingClientRect().top + wanted * this.height;
    const [low, high] = [160, innerHeight - 2 * this.height];
    if (top < low || top > high) scrollBy({ top: top < low ? top - low : top - high, behavior: "instant" });
    this.draw();
    this.made.get(wanted)?.querySelector("a")?.focus({ preventScroll: true });
  }
}
