// The scatter of two transports and the cumulative distribution of all.

import * as Plot from "@observablehq/plot";

import type { Overview } from "./data.ts";
import { h, s, type Child } from "./dom.ts";
import { bytes, count, percent, plural, protocol, signed, time } from "./format.ts";
import { toAddress, type Metric, type State } from "./state.ts";
import { hideTip, showTip } from "./tooltip.ts";

/** What a point stands for: a page with the median of its runs, or one run. */
interface Observation {
  page: number;
  run: number | null;
  value: number;
}

interface Point {
  page: number;
  run: number | null;
  x: number;
  y: number;
}

/** Seconds, kilobytes or a count: what the axes are in. */
export function scaled(metric: Metric, value: number): number {
  return metric.unit === "time" ? value / 1e6 : metric.unit === "bytes" ? value / 1e3 : value;
}

function unscaled(metric: Metric, value: number): number {
  return metric.unit === "time" ? value * 1e6 : metric.unit === "bytes" ? value * 1e3 : value;
}

/** A median as text. */
export function figure(metric: Metric, value: number | null | undefined): string {
  if (value == null) return "–";
  return metric.unit === "time" ? time(value / 1000) : metric.unit === "bytes" ? bytes(value) : count(value);
}

/** How much less y is than x, in percent of x: the lab's speed-up. */
export function saving(x: number | null | undefined, y: number | null | undefined): number | null {
  return x == null || y == null || x === 0 ? null : (100 * (x - y)) / x;
}

function axisLabel(metric: Metric): string {
  return { time: `${metric.label} (s)`, bytes: `${metric.label} (kB)`, count: metric.label }[metric.unit];
}

const FONT = { fontSize: "12.5px", fontFamily: "inherit", background: "none", color: "var(--ink)", overflow: "visible" };

/** Grid lines where the axes have their ticks. */
function grid(x: number | number[], y: number | number[]) {
  const rule = { stroke: "var(--rule)", strokeOpacity: 1 };
  return [Plot.gridX({ ...rule, ticks: x }), Plot.gridY({ ...rule, ticks: y })];
}

/** Where an axis has ticks: as the library sees fit, but 1, 2, 5, 10, … if it is logarithmic. */
function axisTicks(state: State, [from, to]: [number, number]): number | number[] {
  if (!state.log) return 8;
  const decades = Array.from({ length: Math.ceil(Math.log10(to / from)) + 2 }, (_, i) => 10 ** (Math.floor(Math.log10(from)) + i));
  return decades.flatMap((d) => [d, 2 * d, 5 * d]).filter((t) => t >= from && t <= to);
}

/** The medians of `metric` over one transport, one a page. */
export function medians(overview: Overview, state: State, transport: number): (number | null)[] {
  return overview.cells[state.network]![transport]!.medians[state.metric.key]!;
}

/** The observations of `metric` over one transport. */
function observations(overview: Overview, state: State, transport: number): Observation[] {
  const cell = overview.cells[state.network]![transport]!;
  const key = state.metric.key;
  const values = cell.by_run ? cell.by_run.figures[key]! : cell.medians[key]!;
  return values.flatMap((v, i) => (v === null ? [] : [{ page: cell.by_run ? cell.by_run.page[i]! : i, run: cell.by_run ? cell.by_run.run[i]! : null, value: scaled(state.metric, v) }]));
}

/** Observations of the same page and run over x and over y. */
function pairs(overview: Overview, state: State): Point[] {
  const name = (o: Observation) => `${o.page}/${o.run}`;
  const ys = new Map(observations(overview, state, state.y).map((o) => [name(o), o.value]));
  return observations(overview, state, state.x).flatMap((o) => {
    const y = ys.get(name(o));
    return y === undefined ? [] : [{ page: o.page, run: o.run, x: o.value, y }];
  });
}

/** An axis for values from `min` to `max`: from zero, but for the runs of one page close around them. */
function extent(overview: Overview, state: State, min: number, max: number): [number, number] {
  if (state.log) return [min / 1.15, max * 1.15];
  if (overview.summary.unit === "page") return [0, max * 1.04 || 1];
  const margin = 0.08 * (max - min) || 0.1 * max || 1;
  return [Math.max(0, min - margin), max + margin];
}

/** One point a page; pages outside `among` are faint. */
export function scatter(overview: Overview, state: State, among: Set<number>, open: (page: number) => void): Child[] {
  const { metric } = state;
  const all = pairs(overview, state);
  const points = state.log ? all.filter((p) => p.x > 0 && p.y > 0) : all;
  const unit = overview.summary.unit;
  const cell = overview.cells[state.network]![state.x]!;
  const possible = unit === "page" ? overview.pages.id.length : cell.loads.reduce((a, b) => a + b, 0);
  const hidden = possible - points.length;
  if (points.length === 0) return [h("p", { class: "muted" }, `No ${unit} has this figure over both transports.`)];
  const values = points.flatMap((p) => [p.x, p.y]);
  const [min, max] = [Math.min(...values), Math.max(...values) || 1];
  const domain = extent(overview, state, min, max);
  const [lo, hi] = domain;
  const between = (f: number) => (state.log ? lo * (hi / lo) ** f : lo + f * (hi - lo));
  const [nx, ny] = [protocol(overview.summary.transports[state.x]!), protocol(overview.summary.transports[state.y]!)];
  const better = metric.unit === "time" ? "faster" : "less";
  const size = 600;
  const color = (p: Point) => (p.y < p.x ? `var(--t${state.y})` : p.y > p.x ? `var(--t${state.x})` : "var(--muted)");
  const ticks = axisTicks(state, domain);
  const axis = { type: state.log ? "log" : "linear", domain, ticks, ...(state.log && { tickFormat: "~g" }) } as const;
  const half = (text: string, x: number, y: number, transport: number, anchor: "start" | "end") =>
    Plot.text([text], { x: between(x), y: between(y), textAnchor: anchor, fill: `var(--t${transport}-ink)`, fontWeight: 600, fontSize: 14 });
  const plot = Plot.plot({
    width: size,
    height: size,
    marginLeft: 56,
    marginBottom: 44,
    marginTop: 14,
    marginRight: 14,
    style: FONT,
    className: "plot",
    ariaLabel: `${metric.label}: ${ny} against ${nx}, one point a ${unit}`,
    x: { ...axis, label: `${nx}: ${axisLabel(metric)}`, labelAnchor: "center", labelArrow: "none" },
    y: { ...axis, label: `${ny}: ${axisLabel(metric)}`, labelAnchor: "center", labelArrow: "none" },
    marks: [
      grid(ticks, ticks),
      half(`${nx} ${better} ↖`, 0.03, 0.965, state.x, "start"),
      half(`↘ ${ny} ${better}`, 0.97, 0.035, state.y, "end"),
      Plot.link([0], { x1: lo, y1: lo, x2: hi, y2: hi, stroke: "var(--identity)", strokeWidth: 1.75, className: "identity" }),
      Plot.dot(points, {
        x: "x",
        y: "y",
        r: points.length > 1000 ? 2.5 : 4,
        fill: color,
        fillOpacity: (p: Point) => (among.has(p.page) ? 0.6 : 0.08),
        stroke: color,
        strokeOpacity: (p: Point) => (among.has(p.page) ? 1 : 0.15),
        strokeWidth: 1,
        href: (p: Point) => toAddress(overview, { ...state, page: p.page }),
        ariaLabel: (p: Point) => overview.pages.title[p.page] || overview.pages.id[p.page]!,
        className: "points",
      }),
      Plot.dot(points, Plot.pointer({ x: "x", y: "y", r: 8, stroke: "var(--ink)", strokeWidth: 2, maxRadius: 24 })),
    ],
  });
  // The table is the way through the pages by keyboard; several hundred stops here would be in its way.
  for (const link of plot.querySelectorAll("a")) link.setAttribute("tabindex", "-1");
  let near: Point | null = null;
  plot.addEventListener("input", () => {
    near = (plot as { value?: Point | null }).value ?? null;
    (plot as SVGElement | HTMLElement).style.cursor = near ? "pointer" : "";
    if (!near) hideTip();
  });
  plot.addEventListener("pointermove", (event) => {
    const { clientX, clientY } = event as PointerEvent;
    if (near) showTip(clientX, clientY, pointTip(overview, state, near));
  });
  plot.addEventListener("pointerleave", hideTip);
  plot.addEventListener("click", (event) => {
    if (!near) return;
    event.preventDefault();
    open(near.page);
  });
  return [plot, hidden > 0 && h("p", { class: "muted" }, `${count(hidden)} of ${plural(possible, unit)} did not complete over both transports, or have no such figure, and are not shown.`)];
}

function pointTip(overview: Overview, state: State, { page, run, x, y }: Point): Child[] {
  const { pages, summary } = overview;
  const row = (t: number, value: number) =>
    h("tr", {}, h("th", {}, h("i", { class: "dot", style: `background:var(--t${t})` }), protocol(summary.transports[t]!)), h("td", { class: "n" }, figure(state.metric, unscaled(state.metric, value))));
  return [
    h("b", {}, pages.title[page] || pages.id[page]!, run !== null && `, run ${run}`),
    h("div", { class: "muted url" }, pages.url[page]!),
    h("table", {}, row(state.x, x), row(state.y, y), h("tr", {}, h("th", {}, state.metric.unit === "time" ? "speed-up" : "saving"), h("td", { class: "n" }, signed(saving(x, y))))),
    h("div", { class: "muted" }, `${pages.requests[page]} requests, ${pages.hosts[page]} hosts, ${bytes(pages.bytes[page])}`),
  ];
}

/** The share of pages at or below each value, one line a transport. */
export function distribution(overview: Overview, state: State): Child[] {
  const { metric } = state;
  const lines = overview.summary.transports.map((name, transport) => {
    const values = observations(overview, state, transport)
      .map((o) => o.value)
      .filter((v) => !state.log || v > 0)
      .sort((a, b) => a - b);
    return { name: protocol(name), transport, values };
  });
  const shown = lines.filter((l) => l.values.length > 0);
  if (shown.length === 0) return [h("p", { class: "muted" }, "No complete loads.")];
  const unit = overview.summary.unit;
  const dash = (transport: number) => ["", "7 3", "2 3", "9 3 2 3"][transport % 4]!;
  const ends = shown.flatMap((l) => [l.values[0]!, l.values.at(-1)!]);
  const domain = extent(overview, state, Math.min(...ends), Math.max(...ends));
  const start = domain[0];
  const ticks = axisTicks(state, domain);
  const steps = (values: number[]): [number, number][] => [[start, 0], ...values.map((v, i): [number, number] => [v, (100 * (i + 1)) / values.length])];
  const height = 600;
  const plot = Plot.plot({
    width: 600,
    height,
    marginLeft: 56,
    marginBottom: 44,
    marginTop: 14,
    marginRight: 24,
    style: FONT,
    className: "plot",
    ariaLabel: `Cumulative distribution of ${metric.label} over ${unit}s, one line a transport`,
    x: { type: state.log ? "log" : "linear", domain, ticks, label: axisLabel(metric), labelAnchor: "center", labelArrow: "none", ...(state.log && { tickFormat: "~g" }) },
    y: { domain: [0, 100], ticks: 10, label: `${unit}s at or below (%)`, labelAnchor: "center", labelArrow: "none" },
    marks: [
      grid(ticks, 10),
      Plot.ruleY([50], { stroke: "var(--muted)", strokeDasharray: "3 4" }),
      shown.map((l) => Plot.line(steps(l.values), { curve: "step-after", stroke: `var(--t${l.transport})`, strokeWidth: 2.25, strokeDasharray: dash(l.transport) })),
    ],
  });
  const invert = plot.scale("x")?.invert;
  plot.addEventListener("pointermove", (event) => {
    const { clientX, clientY } = event as PointerEvent;
    const box = plot.getBoundingClientRect();
    const at = invert?.(((clientX - box.left) / box.width) * 600) as number | undefined;
    if (at === undefined || at < start) return hideTip();
    const share = (values: number[]) => (100 * values.filter((v) => v <= at).length) / values.length;
    showTip(
      clientX,
      clientY,
      h("b", {}, `Within ${figure(metric, unscaled(metric, at))}`),
      h("table", {}, shown.map((l) => h("tr", {}, h("th", {}, h("i", { class: "dot", style: `background:var(--t${l.transport})` }), l.name), h("td", { class: "n" }, `${percent(share(l.values), 0)} of ${unit}s`)))),
    );
  });
  plot.addEventListener("pointerleave", hideTip);
  const sample = (transport: number) =>
    s("svg", { width: 34, height: 10 }, s("line", { x2: 34, y1: 5, y2: 5, stroke: `var(--t${transport})`, "stroke-width": 2.5, "stroke-dasharray": dash(transport) }));
  const legend = shown.map((l) => h("span", { style: `color:var(--t${l.transport}-ink)` }, sample(l.transport), l.name));
  return [h("div", { class: "lines" }, legend), plot];
}
