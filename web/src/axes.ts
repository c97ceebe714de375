// Axes that the charts share.

import * as Plot from "@observablehq/plot";

import type { Overview } from "./data.ts";
import type { Metric, State } from "./state.ts";

/** Side of a chart, before it is fitted to its column. */
export const SIZE = 600;

/** What every chart has. */
export const COMMON = {
  width: SIZE,
  height: SIZE,
  marginLeft: 56,
  marginBottom: 44,
  marginTop: 14,
  marginRight: 16,
  className: "plot",
  style: {
    fontSize: "12.5px",
    fontFamily: "inherit",
    background: "none",
    color: "var(--ink)",
    overflow: "visible",
  },
};

/** An axis of the figure from `domain`; `name` says whose it is. */
export function axis(state: State, domain: [number, number], name = ""): Plot.ScaleOptions {
  return {
    type: state.log ? "log" : "linear",
    domain,
    ticks: ticks(state, domain),
    label: name + axisLabel(state.metric),
    labelAnchor: "center",
    labelArrow: "none",
    ...(state.log && { tickFormat: "~g" }),
  };
}

/** Grid lines where the axes have their ticks. */
export function grid(x: number | number[], y: number | number[]): Plot.Markish {
  const rule = { stroke: "var(--rule)", strokeOpacity: 1 };
  return [Plot.gridX({ ...rule, ticks: x }), Plot.gridY({ ...rule, ticks: y })];
}

/** Where an axis has ticks: as the library sees fit, but 1, 2, 5, 10, … if it is logarithmic. */
export function ticks(state: State, [from, to]: [number, number]): number | number[] {
  if (!state.log) return 8;
  const lowest = Math.floor(Math.log10(from));
  const decades = Array.from(
    { length: Math.ceil(Math.log10(to)) - lowest + 1 },
    (_, i) => 10 ** (lowest + i),
  );
  return decades.flatMap((d) => [d, 2 * d, 5 * d]).filter((t) => t >= from && t <= to);
}

/** The domain for values: from zero, but for the runs of one page close around them. */
export function extent(overview: Overview, state: State, values: number[]): [number, number] {
  const [min, max] = values.reduce(([low, high], v) => [Math.min(low, v), Math.max(high, v)], [Infinity, 0]);
  if (state.log) return [min / 1.15, max * 1.15];
  if (overview.summary.unit === "page") return [0, max * 1.04 || 1];
  const margin = 0.08 * (max - min) || 0.1 * max || 1;
  return [Math.max(0, min - margin), max + margin];
}

function axisLabel(metric: Metric): string {
  return { time: `${metric.label} (s)`, bytes: `${metric.label} (kB)`, count: metric.label }[metric.unit];
}
