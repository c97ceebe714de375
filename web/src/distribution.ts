// The share of pages at or below each value, one line a transport.

import * as Plot from "@observablehq/plot";

import { COMMON, SIZE, axis, extent, grid, ticks } from "./axes.ts";
import type { Overview } from "./data.ts";
import { h, s, type Child } from "./dom.ts";
import { percent, protocol } from "./format.ts";
import { axisUnit, figure, observations } from "./observations.ts";
import { transportName } from "./parts.ts";
import type { State } from "./state.ts";
import { hideTip, showTip } from "./tooltip.ts";

interface Line {
  transport: number;
  /** Ascending. */
  values: number[];
}

/** Lines differ in their dashes as well as in colour. */
const DASHES = ["", "7 3", "2 3", "9 3 2 3"];
const dash = (transport: number) => DASHES[transport % DASHES.length]!;

export function distribution(overview: Overview, state: State): Child[] {
  const lines = overview.summary.transports
    .map<Line>((_, transport) => {
      const values = observations(overview, state, transport).map((o) => o.value);
      return { transport, values: values.sort((a, b) => a - b) };
    })
    .filter((line) => line.values.length > 0);
  if (lines.length === 0) return [h("p", { class: "muted" }, "No complete loads.")];
  const { unit } = overview.summary;
  const plot = draw(overview, state, lines);
  const invert = plot.scale("x")?.invert;
  plot.addEventListener("pointermove", (event) => {
    const { clientX, clientY } = event as PointerEvent;
    const box = plot.getBoundingClientRect();
    const x = ((clientX - box.left) / box.width) * SIZE;
    if (!invert || x < COMMON.marginLeft || x > SIZE - COMMON.marginRight) return hideTip();
    const at: number = invert(x);
    const share = (values: number[]) => (100 * values.filter((v) => v <= at).length) / values.length;
    const row = (line: Line) =>
      h(
        "tr",
        {},
        h("th", {}, transportName(overview, line.transport)),
        h("td", { class: "n" }, `${percent(share(line.values), 0)} of ${unit}s`),
      );
    const within = h("b", {}, `Within ${figure(state.metric, at * axisUnit(state.metric))}`);
    showTip(clientX, clientY, within, h("table", {}, lines.map(row)));
  });
  plot.addEventListener("pointerleave", hideTip);
  return [legend(overview, lines), plot];
}

function draw(overview: Overview, state: State, lines: Line[]) {
  const { unit } = overview.summary;
  const domain = extent(
    overview,
    state,
    lines.flatMap((l) => [l.values[0]!, l.values.at(-1)!]),
  );
  const steps = (values: number[]): [number, number][] => [
    [domain[0], 0],
    ...values.map((v, i): [number, number] => [v, (100 * (i + 1)) / values.length]),
  ];
  return Plot.plot({
    ...COMMON,
    ariaLabel: `Cumulative distribution of ${state.metric.label} over ${unit}s, one line a transport`,
    x: axis(state, domain),
    y: {
      domain: [0, 100],
      ticks: 10,
      label: `${unit}s at or below (%)`,
      labelAnchor: "center",
      labelArrow: "none",
    },
    marks: [
      grid(ticks(state, domain), 10),
      Plot.ruleY([50], { stroke: "var(--muted)", strokeDasharray: "3 4" }),
      lines.map((l) =>
        Plot.line(steps(l.values), {
          curve: "step-after",
          stroke: `var(--t${l.transport})`,
          strokeWidth: 2.25,
          strokeDasharray: dash(l.transport),
        }),
      ),
    ],
  });
}

function legend(overview: Overview, lines: Line[]): HTMLElement {
  const entry = ({ transport }: Line) => {
    const stroke = {
      stroke: `var(--t${transport})`,
      "stroke-width": 2.5,
      "stroke-dasharray": dash(transport),
    };
    const sample = s("svg", { width: 34, height: 10 }, s("line", { x2: 34, y1: 5, y2: 5, ...stroke }));
    const name = protocol(overview.summary.transports[transport]!);
    return h("span", { style: `color:var(--t${transport}-ink)` }, sample, name);
  };
  return h("div", { class: "lines" }, lines.map(entry));
}
