// What the charts and the table show of a run: observations, in the units of their axes.

import type { Overview } from "./data.ts";
import { bytes, count, time } from "./format.ts";
import type { Metric, State } from "./state.ts";

/** What a point stands for: a page with the median of its runs, or one run. */
export interface Observation {
  page: number;
  run: number | null;
  value: number;
}

/** An observation over both transports. */
export interface Pair {
  page: number;
  run: number | null;
  x: number;
  y: number;
}

/** How many of a figure's own units (µs, bytes, ones) an axis shows as one (s, kB, ones). */
export function axisUnit(metric: Metric): number {
  return { time: 1e6, bytes: 1e3, count: 1 }[metric.unit];
}

/** A figure as text. */
export function figure(metric: Metric, value: number | null | undefined): string {
  if (value == null) return "–";
  return metric.unit === "time" ? time(value / 1000) : metric.unit === "bytes" ? bytes(value) : count(value);
}

/** How much less y is than x, in percent of x: the lab's speed-up. */
export function saving(x: number | null | undefined, y: number | null | undefined): number | null {
  return x == null || y == null || x === 0 ? null : (100 * (x - y)) / x;
}

/** The medians of the figure over one transport, one a page. */
export function medians(overview: Overview, state: State, transport: number): (number | null)[] {
  return overview.cells[state.network]![transport]!.medians[state.metric.key]!;
}

/** The observations over one transport; a logarithmic axis has no place for zero. */
export function observations(overview: Overview, state: State, transport: number): Observation[] {
  const { by_run } = overview.cells[state.network]![transport]!;
  const values = by_run ? by_run.figures[state.metric.key]! : medians(overview, state, transport);
  return values.flatMap((value, i) => {
    if (value === null || (state.log && value <= 0)) return [];
    const [page, run] = by_run ? [by_run.page[i]!, by_run.run[i]!] : [i, null];
    return [{ page, run, value: value / axisUnit(state.metric) }];
  });
}

/** Observations of the same page and run over x and over y. */
export function pairs(overview: Overview, state: State): Pair[] {
  const name = (o: Observation) => `${o.page}/${o.run}`;
  const ys = new Map(observations(overview, state, state.y).map((o) => [name(o), o.value]));
  return observations(overview, state, state.x).flatMap((o) => {
    const y = ys.get(name(o));
    return y === undefined ? [] : [{ page: o.page, run: o.run, x: o.value, y }];
  });
}

/** How many pairs there could be, had every load completed. */
export function pairsPossible(overview: Overview, state: State): number {
  if (overview.summary.unit === "page") return overview.pages.id.length;
  return overview.cells[state.network]![state.x]!.loads.reduce((a, b) => a + b, 0);
}
