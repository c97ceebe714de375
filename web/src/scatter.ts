// Two transports against each other: one point a page, the same scale on both axes, a red line where they are equal.

import * as Plot from "@observablehq/plot";

import { COMMON, axis, extent, grid, ticks } from "./axes.ts";
import { pageName, type Overview } from "./data.ts";
import { h, type Child } from "./dom.ts";
import { bytes, count, plural, protocol, signed } from "./format.ts";
import { axisUnit, figure, pairs, pairsPossible, saving, type Pair } from "./observations.ts";
import { transportName } from "./parts.ts";
import { toAddress, type State } from "./state.ts";
import { hideTip, showTip } from "./tooltip.ts";

/** Points of pages outside `among` are faint; a click on a point opens its page. */
export function scatter(
  overview: Overview,
  state: State,
  among: Set<number>,
  open: (page: number) => void,
): Child[] {
  const points = pairs(overview, state);
  const { unit } = overview.summary;
  if (points.length === 0) {
    return [h("p", { class: "muted" }, `No ${unit} has this figure over both transports.`)];
  }
  const plot = draw(overview, state, points, among);
  // The table is the way through the pages by keyboard; several hundred stops here would be in its way.
  for (const link of plot.querySelectorAll("a")) link.setAttribute("tabindex", "-1");
  let near: Pair | null = null;
  plot.addEventListener("input", () => {
    near = (plot as { value?: Pair | null }).value ?? null;
    plot.style.cursor = near ? "pointer" : "";
    if (!near) hideTip();
  });
  plot.addEventListener("pointermove", (event) => {
    const { clientX, clientY } = event as PointerEvent;
    if (near) showTip(clientX, clientY, tip(overview, state, near));
  });
  plot.addEventListener("pointerleave", hideTip);
  plot.addEventListener("click", (event) => {
    if (!near) return;
    event.preventDefault();
    open(near.page);
  });
  const possible = pairsPossible(overview, state);
  const hidden = possible - points.length;
  const missing = `${count(hidden)} of ${plural(possible, unit)} did not complete over both transports, or have no such figure, and are not shown.`;
  return [plot, hidden > 0 && h("p", { class: "muted" }, missing)];
}

function draw(overview: Overview, state: State, points: Pair[], among: Set<number>) {
  const { metric, x, y } = state;
  const domain = extent(
    overview,
    state,
    points.flatMap((p) => [p.x, p.y]),
  );
  const [lo, hi] = domain;
  const names = overview.summary.transports;
  const [nx, ny] = [protocol(names[x]!), protocol(names[y]!)];
  const better = metric.unit === "time" ? "faster" : "less";
  const color = (p: Pair) => (p.y === p.x ? "var(--muted)" : `var(--t${p.y < p.x ? y : x})`);
  const at = (f: number) => (state.log ? lo * (hi / lo) ** f : lo + f * (hi - lo));
  const half = (text: string, fx: number, fy: number, transport: number, textAnchor: "start" | "end") =>
    Plot.text([text], {
      x: at(fx),
      y: at(fy),
      textAnchor,
      fill: `var(--t${transport}-ink)`,
      fontWeight: 600,
      fontSize: 14,
    });
  return Plot.plot({
    ...COMMON,
    ariaLabel: `${metric.label}: ${ny} against ${nx}, one point a ${overview.summary.unit}`,
    x: axis(state, domain, `${nx}: `),
    y: axis(state, domain, `${ny}: `),
    marks: [
      grid(ticks(state, domain), ticks(state, domain)),
      half(`${nx} ${better} ↖`, 0.03, 0.965, x, "start"),
      half(`↘ ${ny} ${better}`, 0.97, 0.035, y, "end"),
      Plot.link([0], {
        ...{ x1: lo, y1: lo, x2: hi, y2: hi },
        stroke: "var(--identity)",
        strokeWidth: 1.75,
        className: "identity",
      }),
      Plot.dot(points, {
        x: "x",
        y: "y",
        r: points.length > 1000 ? 2.5 : 4,
        fill: color,
        fillOpacity: (p: Pair) => (among.has(p.page) ? 0.6 : 0.08),
        stroke: color,
        strokeOpacity: (p: Pair) => (among.has(p.page) ? 1 : 0.15),
        strokeWidth: 1,
        href: (p: Pair) => toAddress(overview, { ...state, page: p.page }),
        ariaLabel: (p: Pair) => pageName(overview, p.page),
        className: "points",
      }),
      Plot.dot(
        points,
        Plot.pointer({ x: "x", y: "y", r: 8, stroke: "var(--ink)", strokeWidth: 2, maxRadius: 24 }),
      ),
    ],
  });
}

function tip(overview: Overview, state: State, { page, run, x, y }: Pair): Child[] {
  const { pages } = overview;
  const row = (name: Child, value: string) => h("tr", {}, h("th", {}, name), h("td", { class: "n" }, value));
  const own = (value: number) => figure(state.metric, value * axisUnit(state.metric));
  return [
    h("b", {}, pageName(overview, page), run !== null && `, run ${run}`),
    h("div", { class: "muted url" }, pages.url[page]!),
    h(
      "table",
      {},
      row(transportName(overview, state.x), own(x)),
      row(transportName(overview, state.y), own(y)),
      row(state.metric.unit === "time" ? "speed-up" : "saving", signed(saving(x, y))),
    ),
    h(
      "div",
      { class: "muted" },
      `${pages.requests[page]} requests, ${pages.hosts[page]} hosts, ${bytes(pages.bytes[page])}`,
    ),
  ];
}
