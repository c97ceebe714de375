// All pages in a table that sorts and filters. Its order is the order in which the arrow keys walk the pages.

import { figure, medians, saving } from "./charts.ts";
import type { Overview } from "./data.ts";
import { h, type Child } from "./dom.ts";
import { bytes, count, protocol, signed } from "./format.ts";
import { toAddress, type State } from "./state.ts";

interface Column {
  id: string;
  head: Child;
  /** What to sort by; null goes last. */
  key: (page: number) => number | string | null;
  cell: (page: number) => Child;
  text?: boolean;
}

export interface PageTable {
  element: HTMLElement;
  /** Pages that pass the filter, in the table's order. */
  order: () => number[];
  update: (state: State) => void;
}

/** `filtered` hears of every change of the filter. */
export function pageTable(overview: Overview, filtered: (pages: number[]) => void): PageTable {
  const { pages, summary } = overview;
  let state: State;
  let [sortBy, descending] = summary.transports.length > 1 ? ["speedup", true] : ["page", false];
  let order = pages.id.map((_, i) => i);
  const haystack = pages.id.map((id, i) => `${id} ${pages.title[i]} ${pages.url[i]}`.toLowerCase());
  const box = h("input", {
    type: "search",
    id: "filter",
    placeholder: "Filter by title, address or id",
    "aria-label": "Filter pages",
    oninput: () => {
      draw();
      filtered(order);
    },
  });
  const shown = h("span", { class: "muted" });
  const table = h("table", { class: "grid pages", id: "pages" });
  const element = h("section", {}, h("div", { class: "bar" }, h("h2", {}, "Pages"), box, shown), h("div", { class: "scroll" }, table));

  function columns(): Column[] {
    const transports = summary.transports.map((_, i) => i);
    const cells = overview.cells[state.network]!;
    const value = (t: number) => (page: number) => medians(overview, state, t)[page] ?? null;
    const speedup = (page: number) => saving(value(state.x)(page), value(state.y)(page));
    const name = (t: number) => protocol(summary.transports[t]!);
    const dot = (t: number) => h("i", { class: "dot", style: `background:var(--t${t})` });
    const failed = (page: number) => cells.some((c) => c.complete[page]! < c.loads[page]!);
    const out: Column[] = [
      {
        id: "page",
        head: "Page",
        text: true,
        key: (p) => (pages.title[p] || pages.id[p]!).toLowerCase(),
        cell: (p) => [
          h("a", { href: toAddress(overview, { ...state, page: p }) }, pages.title[p] || pages.id[p]!),
          h("div", { class: "muted url" }, pages.url[p]!),
        ],
      },
      ...transports.map<Column>((t) => ({ id: `m${t}`, head: [dot(t), name(t)], key: value(t), cell: (p) => figure(state.metric, value(t)(p)) })),
    ];
    if (state.x !== state.y) {
      const widest = Math.max(1, ...pages.id.map((_, p) => Math.abs(speedup(p) ?? 0)));
      out.push({
        id: "speedup",
        head: `${name(state.y)} ${state.metric.unit === "time" ? "speed-up" : "saving"}`,
        key: speedup,
        cell: (p) => meter(speedup(p), widest),
      });
    }
    out.push(
      { id: "requests", head: "Requests", key: (p) => pages.requests[p]!, cell: (p) => count(pages.requests[p]) },
      { id: "hosts", head: "Hosts", key: (p) => pages.hosts[p]!, cell: (p) => count(pages.hosts[p]) },
      { id: "bytes", head: "Size", key: (p) => pages.bytes[p]!, cell: (p) => bytes(pages.bytes[p]) },
      ...transports.map<Column>((t) => ({
        id: `c${t}`,
        head: [dot(t), "conns"],
        key: (p) => cells[t]!.medians["connections"]![p] ?? null,
        cell: (p) => count(cells[t]!.medians["connections"]![p]),
      })),
    );
    if (pages.id.some((_, p) => failed(p))) {
      const done = (p: number) => cells.map((c) => `${c.complete[p]}/${c.loads[p]}`).join("  ");
      out.push({ id: "complete", head: "Complete", key: (p) => (failed(p) ? 0 : 1), cell: (p) => h("span", { class: failed(p) ? "warn" : "muted" }, done(p)) });
    }
    return out;
  }

  function draw(): void {
    const all = columns();
    const column = all.find((c) => c.id === sortBy) ?? all[0]!;
    const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
    order = pages.id.map((_, i) => i).filter((i) => words.every((w) => haystack[i]!.includes(w)));
    order.sort((a, b) => compare(column.key(a), column.key(b), descending) || a - b);
    shown.textContent = order.length < pages.id.length ? `${count(order.length)} of ${count(pages.id.length)}` : `${count(order.length)}`;
    const head = all.map((c) => {
      const sorted = c.id === column.id ? (descending ? "descending" : "ascending") : "none";
      return h("th", { class: c.text ? "" : "n", "aria-sort": sorted, scope: "col" }, h("button", { onclick: () => sort(c) }, c.head));
    });
    const rows = order.map((p) =>
      h("tr", { "data-page": pages.id[p]!, onclick: (event: MouseEvent) => follow(event) }, all.map((c) => h("td", { class: c.text ? "page" : "n" }, c.cell(p)))),
    );
    table.replaceChildren(h("thead", {}, h("tr", {}, head)), h("tbody", {}, rows));
  }

  function sort(column: Column): void {
    // Numbers are looked at from the largest, names from the first.
    if (sortBy === column.id) descending = !descending;
    else [sortBy, descending] = [column.id, !column.text];
    draw();
  }

  return {
    element,
    order: () => order,
    update: (next) => {
      state = next;
      draw();
    },
  };
}

/** A click anywhere in a row follows the row's link, unless it ends a selection of text. */
function follow(event: MouseEvent): void {
  if ((event.target as Element).closest("a") || getSelection()?.toString()) return;
  (event.currentTarget as Element).querySelector("a")?.click();
}

/** A figure and a bar from the middle: to the right is faster. */
function meter(value: number | null, widest: number): Child {
  if (value === null) return "–";
  const half = (50 * Math.min(widest, Math.abs(value))) / widest;
  const bar = h("i", { class: value < 0 ? "bad" : "good", style: `width:${half}%;${value < 0 ? "right" : "left"}:50%` });
  return h("span", { class: "meter" }, h("span", { class: "track", "aria-hidden": "true" }, bar), h("span", {}, signed(value)));
}

function compare(a: number | string | null, b: number | string | null, descending: boolean): number {
  if (a === null || b === null) return Number(a === null) - Number(b === null);
  const less = typeof a === "string" && typeof b === "string" ? a.localeCompare(b, "en", { numeric: true }) : Number(a) - Number(b);
  return descending ? -less : less;
}
