// All pages in a table that sorts and filters. Its order is the order in which the arrow keys walk the pages.

import { pageName, type Overview } from "./data.ts";
import { h, type Child } from "./dom.ts";
import { bytes, count, protocol, signed } from "./format.ts";
import { figure, medians, saving } from "./observations.ts";
import { dot, transportName } from "./parts.ts";
import { toAddress, type State } from "./state.ts";

interface Column {
  id: string;
  head: Child;
  /** What to sort by; null goes last. */
  key: (page: number) => number | string | null;
  cell: (page: number) => Child;
  text?: boolean;
}

export class PageTable {
  readonly element: HTMLElement;
  /** Pages that pass the filter, in the table's order. */
  order: number[];
  private sortBy: string;
  private descending: boolean;
  /** What the filter looks at, by page. */
  private readonly words: string[];
  private readonly box: HTMLInputElement;
  private readonly shown = h("span", { class: "muted" });
  private readonly table = h("table", { class: "grid pages", id: "pages" });

  /** `filtered` is called whenever the filter changes. */
  constructor(
    private readonly overview: Overview,
    private state: State,
    filtered: () => void,
  ) {
    const { pages, summary } = overview;
    [this.sortBy, this.descending] = summary.transports.length > 1 ? ["speedup", true] : ["page", false];
    this.order = pages.id.map((_, i) => i);
    this.words = pages.id.map((id, i) => `${id} ${pages.title[i]} ${pages.url[i]}`.toLowerCase());
    const filter = () => {
      this.draw();
      filtered();
    };
    const asks = "Filter by title, address or id";
    const look = { type: "search", id: "filter", placeholder: asks, "aria-label": asks };
    this.box = h("input", { ...look, oninput: filter });
    this.element = h(
      "section",
      {},
      h("div", { class: "bar" }, h("h2", {}, "Pages"), this.box, this.shown),
      h("div", { class: "scroll" }, this.table),
    );
    this.draw();
  }

  update(state: State): void {
    this.state = state;
    this.draw();
  }

  private draw(): void {
    const { pages } = this.overview;
    const columns = this.columns();
    const by = columns.find((c) => c.id === this.sortBy) ?? columns[0]!;
    const asked = this.box.value.toLowerCase().split(/\s+/).filter(Boolean);
    this.order = pages.id.map((_, i) => i).filter((i) => asked.every((w) => this.words[i]!.includes(w)));
    this.order.sort((a, b) => compare(by.key(a), by.key(b), this.descending) || a - b);
    const all = pages.id.length;
    this.shown.textContent =
      this.order.length < all ? `${count(this.order.length)} of ${count(all)}` : count(all);
    const head = columns.map((c) => {
      const sorted = c !== by ? "none" : this.descending ? "descending" : "ascending";
      const look = { class: c.text ? "" : "n", "aria-sort": sorted, scope: "col" };
      return h("th", look, h("button", { onclick: () => this.sort(c) }, c.head));
    });
    const cells = (page: number) =>
      columns.map((c) => h("td", { class: c.text ? "page" : "n" }, c.cell(page)));
    const rows = this.order.map((page) =>
      h("tr", { "data-page": pages.id[page]!, onclick: (event: MouseEvent) => follow(event) }, cells(page)),
    );
    this.table.replaceChildren(h("thead", {}, h("tr", {}, head)), h("tbody", {}, rows));
  }

  private sort(column: Column): void {
    // Numbers are looked at from the largest, names from the first.
    if (this.sortBy === column.id) this.descending = !this.descending;
    else [this.sortBy, this.descending] = [column.id, !column.text];
    this.draw();
  }

  private columns(): Column[] {
    const { pages, summary } = this.overview;
    const cells = this.overview.cells[this.state.network]!;
    const number = (id: string, head: Child, key: (p: number) => number | null, show = count): Column => ({
      id,
      head,
      key,
      cell: (p) => show(key(p)),
    });
    const failed = (page: number) => cells.some((c) => c.complete[page]! < c.loads[page]!);
    const done = (page: number) => cells.map((c) => `${c.complete[page]}/${c.loads[page]}`).join("  ");
    const complete: Column = {
      id: "complete",
      head: "Complete",
      key: (p) => Number(!failed(p)),
      cell: (p) => h("span", { class: failed(p) ? "warn" : "muted" }, done(p)),
    };
    return [
      this.nameColumn(),
      ...summary.transports.map((_, t) =>
        number(`m${t}`, transportName(this.overview, t), this.median(t), (v) => figure(this.state.metric, v)),
      ),
      ...(this.state.x === this.state.y ? [] : [this.speedupColumn()]),
      number("requests", "Requests", (p) => pages.requests[p]!),
      number("hosts", "Hosts", (p) => pages.hosts[p]!),
      number("bytes", "Size", (p) => pages.bytes[p]!, bytes),
      ...cells.map((c, t) => number(`c${t}`, [dot(t), "conns"], (p) => c.medians["connections"]![p] ?? null)),
      ...(pages.id.some((_, p) => failed(p)) ? [complete] : []),
    ];
  }

  private median(transport: number): (page: number) => number | null {
    const values = medians(this.overview, this.state, transport);
    return (page) => values[page] ?? null;
  }

  private nameColumn(): Column {
    const { pages } = this.overview;
    const link = (p: number) => toAddress(this.overview, { ...this.state, page: p });
    return {
      id: "page",
      head: "Page",
      text: true,
      key: (p) => pageName(this.overview, p).toLowerCase(),
      cell: (p) => [
        h("a", { href: link(p) }, pageName(this.overview, p)),
        h("div", { class: "muted url" }, pages.url[p]!),
      ],
    };
  }

  private speedupColumn(): Column {
    const [x, y] = [this.median(this.state.x), this.median(this.state.y)];
    const speedup = (page: number) => saving(x(page), y(page));
    const widest = this.overview.pages.id.reduce(
      (most, _, p) => Math.max(most, Math.abs(speedup(p) ?? 0)),
      1,
    );
    const name = protocol(this.overview.summary.transports[this.state.y]!);
    const head = `${name} ${this.state.metric.unit === "time" ? "speed-up" : "saving"}`;
    return { id: "speedup", head, key: speedup, cell: (p) => meter(speedup(p), widest) };
  }
}

/** A click anywhere in a row follows the row's link, unless it ends a selection of text. */
function follow(event: MouseEvent): void {
  if ((event.target as Element).closest("a") || getSelection()?.toString()) return;
  (event.currentTarget as Element).querySelector("a")?.click();
}

/** A figure and a bar from the middle: to the right is faster. */
function meter(value: number | null, widest: number): Child {
  if (value === null) return "–";
  const half = (50 * Math.abs(value)) / widest;
  const side = value < 0 ? "right" : "left";
  const bar = h("i", { class: value < 0 ? "bad" : "good", style: `width:${half}%;${side}:50%` });
  const track = h("span", { class: "track", "aria-hidden": "true" }, bar);
  return h("span", { class: "meter" }, track, h("span", {}, signed(value)));
}

function compare(a: number | string | null, b: number | string | null, descending: boolean): number {
  if (a === null || b === null) return Number(a === null) - Number(b === null);
  const text = typeof a === "string" && typeof b === "string";
  const less = text ? a.localeCompare(b, "en", { numeric: true }) : Number(a) - Number(b);
  return descending ? -less : less;
}
