// Panels on a common time axis: what the waterfall and the connection view share. A panel is one load; panels stand
// side by side or one above the other, always on the same scale, so that equal lengths are equal times.

import { scaleLinear } from "d3-scale";

import type { Load, Shown } from "./data.ts";
import { h, s, type Child } from "./dom.ts";
import { time } from "./format.ts";

export interface Panel {
  shown: Shown;
  name: string;
  /** Left edge and width in the drawing. */
  left: number;
  width: number;
  /** When the load was over, in ms: where a bar that never ended ends. */
  end: number;
}

export interface Frame {
  panels: Panel[];
  width: number;
  labelWidth: number;
  /** The part of the time axis shown, in ms. */
  domain: [number, number];
}

/** What stands on a frame. */
export interface Body {
  height: number;
  /** Below the panels, over the whole width. */
  labels: Child;
  /** What a panel holds; `at` turns ms into x. */
  panel: (panel: Panel, at: (ms: number) => number) => Child;
  /** Over both panels, not clipped. */
  over?: SVGGElement;
}

export interface Gestures {
  move: (event: PointerEvent, y: number) => void;
  leave: () => void;
  click: (event: PointerEvent, y: number) => void;
  zoom: (domain: [number, number] | null) => void;
}

export const MILESTONES: { name: string; color: string; at: (load: Load) => number | null }[] = [
  { name: "first paint", color: "--paint", at: (l) => l.first_paint_us },
  { name: "parsed", color: "--parsed", at: (l) => l.parsed_us },
  { name: "onload", color: "--onload", at: (l) => l.plt_us },
];

const LINE = 15;

export function panelScale(frame: Frame, panel: Panel): (ms: number) => number {
  const scale = scaleLinear(frame.domain, [panel.left, panel.left + panel.width]);
  return (ms) => scale(ms);
}

let clips = 0;

/** A titled block of panels: a head with the axes that stays in sight, and the body. */
export function timeline(title: Child, frame: Frame, body: Body, gestures: Gestures): HTMLElement {
  const { width } = frame;
  const headHeight = LINE * (2 + MILESTONES.length) + 4;
  const head = s(
    "svg",
    { width, height: headHeight, class: "axis", "aria-hidden": "true" },
    frame.panels.map((p) => axis(frame, p, headHeight)),
  );
  const area = (panel: Panel, look = "") =>
    s("rect", { x: panel.left, y: 0, width: panel.width, height: body.height, class: look });
  const panels = frame.panels.map((panel) => {
    const at = panelScale(frame, panel);
    const clip = `clip-${clips++}`;
    return [
      s("clipPath", { id: clip }, area(panel)),
      s(
        "g",
        { "clip-path": `url(#${clip})` },
        ticks(frame, panel).map((t) =>
          s("line", { x1: at(t), x2: at(t), y1: 0, y2: body.height, class: "gridline" }),
        ),
        body.panel(panel, at),
        milestones(panel.shown.load).map((m) =>
          s("line", {
            x1: at(m.ms),
            x2: at(m.ms),
            y1: 0,
            y2: body.height,
            class: "milestone",
            stroke: `var(${m.color})`,
          }),
        ),
      ),
    ];
  });
  const drawing = s(
    "svg",
    { width, height: body.height, class: "drawing" },
    frame.panels.map((p) => area(p, "ground")),
    body.labels,
    panels,
    body.over,
  );
  listen(drawing, frame, gestures);
  return h("section", { class: "timeline" }, h("div", { class: "sticky" }, title, head), drawing);
}

function milestones(load: Load): { name: string; color: string; ms: number }[] {
  return MILESTONES.flatMap((m) => {
    const us = m.at(load);
    return us === null ? [] : [{ name: m.name, color: m.color, ms: us / 1000 }];
  });
}

function ticks(frame: Frame, panel: Panel): number[] {
  return scaleLinear(frame.domain, [0, panel.width]).ticks(Math.max(3, Math.round(panel.width / 90)));
}

function axis(frame: Frame, panel: Panel, height: number): Child {
  const at = panelScale(frame, panel);
  const [from, to] = frame.domain;
  const inside = (ms: number) => ms >= from && ms <= to;
  const right = panel.left + panel.width;
  const bottom = height - LINE - 2;
  return [
    s(
      "text",
      { x: panel.left, y: LINE - 3, class: "panelname", fill: `var(--t${panel.shown.transport}-ink)` },
      panel.name,
    ),
    milestones(panel.shown.load).map((m, i) => {
      if (!inside(m.ms)) return null;
      const x = at(m.ms);
      const flip = x > right - 120;
      const y = LINE * (i + 2) - 3;
      return [
        s("line", { x1: x, x2: x, y1: y - 10, y2: height, class: "milestone", stroke: `var(${m.color})` }),
        s(
          "text",
          { x: flip ? x - 5 : x + 5, y, "text-anchor": flip ? "end" : "start", fill: `var(${m.color})` },
          `${m.name} ${time(m.ms)}`,
        ),
      ];
    }),
    ticks(frame, panel).map((t) => {
      const x = at(t);
      const anchor = x < panel.left + 16 ? "start" : x > right - 22 ? "end" : "middle";
      return [
        s("line", { x1: x, x2: x, y1: height - 4, y2: height, class: "tick" }),
        s(
          "text",
          { x, y: bottom + LINE - 3, "text-anchor": anchor, class: "ticktext" },
          tickText(t, to - from),
        ),
      ];
    }),
    s("line", { x1: panel.left, x2: right, y1: height - 0.5, y2: height - 0.5, class: "tick" }),
  ];
}

function tickText(ms: number, range: number): string {
  if (range < 900) return `${ms} ms`;
  return `${(ms / 1000).toFixed(range < 2_000 ? 2 : range < 9_000 ? 1 : 0)} s`;
}

/** Hover, click, drag to zoom, double click to see all. */
function listen(drawing: SVGSVGElement, frame: Frame, gestures: Gestures): void {
  let drag: { panel: Panel; from: number; mark: SVGRectElement } | null = null;
  const point = (event: PointerEvent) => {
    const box = drawing.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  };
  const clamp = (panel: Panel, x: number) => Math.min(panel.left + panel.width, Math.max(panel.left, x));
  drawing.addEventListener("pointerdown", (event) => {
    const { x } = point(event);
    const panel = frame.panels.find((p) => x >= p.left && x <= p.left + p.width);
    if (!panel || event.button !== 0) return;
    drag = {
      panel,
      from: x,
      mark: s("rect", { class: "brush", y: 0, height: drawing.height.baseVal.value, width: 0 }),
    };
    drawing.append(drag.mark);
  });
  drawing.addEventListener("pointermove", (event) => {
    const { x, y } = point(event);
    if (!drag) return gestures.move(event, y);
    if (!drawing.hasPointerCapture(event.pointerId)) drawing.setPointerCapture(event.pointerId);
    const to = clamp(drag.panel, x);
    drag.mark.setAttribute("x", String(Math.min(drag.from, to)));
    drag.mark.setAttribute("width", String(Math.abs(to - drag.from)));
    gestures.leave();
  });
  drawing.addEventListener("pointerup", (event) => {
    const { x, y } = point(event);
    const done = drag;
    drag = null;
    done?.mark.remove();
    if (!done || Math.abs(clamp(done.panel, x) - done.from) < 6) return gestures.click(event, y);
    const scale = scaleLinear([done.panel.left, done.panel.left + done.panel.width], frame.domain);
    const ends = [scale(done.from), scale(clamp(done.panel, x))].sort((a, b) => a - b) as [number, number];
    gestures.zoom(ends);
  });
  drawing.addEventListener("pointercancel", () => {
    drag?.mark.remove();
    drag = null;
  });
  drawing.addEventListener("pointerleave", () => !drag && gestures.leave());
  drawing.addEventListener("dblclick", () => gestures.zoom(null));
}
