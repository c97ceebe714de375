// Pieces that several views are made of.

import type { Assumption, Overview } from "./data.ts";
import { h, type Child } from "./dom.ts";
import { count, protocol } from "./format.ts";

/** Assumptions are ordered by how often they were made; the rest is a click away. */
const ASSUMPTIONS_SHOWN = 8;

/** A transport's colour as a dot. */
export function dot(transport: number): HTMLElement {
  return h("i", { class: "dot", style: `background:var(--t${transport})` });
}

/** A transport's dot and name. */
export function transportName(overview: Overview, transport: number): Child {
  return [dot(transport), protocol(overview.summary.transports[transport]!)];
}

/** A phase's colour. */
export function swatch(phase: string): HTMLElement {
  return h("i", { class: "swatch", style: `background:var(--${phase})` });
}

/** A table's cell with a figure. */
export function cell(...content: Child[]): HTMLElement {
  return h("td", { class: "n" }, content);
}

/** Text that stands back. */
export function muted(...content: Child[]): HTMLElement {
  return h("span", { class: "muted" }, content);
}

/** A list of sentences, under a title if there is one; nothing if there are none. */
export function sentences(title: string | null, list: Child[]): Child {
  if (list.length === 0) return null;
  return [
    title !== null && h("h3", {}, title),
    h(
      "ul",
      {},
      list.map((text) => h("li", {}, text)),
    ),
  ];
}

/** Content behind a click. */
export function folded(title: string, ...content: Child[]): HTMLElement {
  return h("details", {}, h("summary", {}, title), content);
}

/** What a recording did not say. */
export function assumptions(list: Assumption[]): Child {
  const items = list.map((a): Child => [a.detail, muted(` (${count(a.count)}×)`)]);
  const rest = items.slice(ASSUMPTIONS_SHOWN);
  return [
    sentences("Assumed where a recording is silent", items.slice(0, ASSUMPTIONS_SHOWN)),
    rest.length > 0 && folded(`${rest.length} more`, sentences(null, rest)),
  ];
}
