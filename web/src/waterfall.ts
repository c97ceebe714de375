// The waterfall: one row a resource, the same row in every panel.

import type { Request } from "./data.ts";
import { characterWidth, s, type Child } from "./dom.ts";
import { clip, clipEnd } from "./format.ts";
import { KINDS, kindColor, spans } from "./phases.ts";
import { panelScale, type Body, type Frame, type Panel } from "./timeline.ts";

const ROW = 18;
const BAR = 12;
/** Where a label's text starts, after the number and the mark of its kind. */
const TEXT_LEFT = 78;

export interface Waterfall extends Body {
  /** Resource at a height. */
  rowAt: (y: number) => number | null;
  /** Marks a resource, what asked for it and what it asked for. */
  mark: (resource: number | null) => void;
  /** The resources from the top. */
  order: number[];
  over: SVGGElement;
}

/** Resources in the order of discovery, in the first panel that has them. */
export function discoveryOrder(panels: Panel[]): number[] {
  const order: number[] = [];
  const seen = new Set<number>();
  for (const panel of panels) {
    for (const r of [...panel.shown.requests].sort(
      (a, b) => a.discovered - b.discovered || a.resource.index - b.resource.index,
    )) {
      if (!seen.has(r.resource.index)) order.push(r.resource.index);
      seen.add(r.resource.index);
    }
  }
  return order;
}

export function waterfall(frame: Frame, order: number[]): Waterfall {
  const rows = new Map(order.map((resource, i) => [resource, i]));
  const height = order.length * ROW;
  const under = s("g", { class: "under" });
  const over = s("g", { class: "over" });
  const all = frame.panels.flatMap((p) => p.shown.requests);
  const home = all.find((r) => r.resource.parent === null)?.resource.host ?? "";
  const top = (resource: number) => rows.get(resource)! * ROW;
  const stripes = order.flatMap((_, i) =>
    i % 2 ? [s("rect", { x: 0, y: i * ROW, width: frame.width, height: ROW, class: "stripe" })] : [],
  );
  const room = Math.floor((frame.labelWidth - TEXT_LEFT - 8) / characterWidth(12));
  const labels = order.map((resource) =>
    label(
      all.find((r) => r.resource.index === resource)!,
      home,
      top(resource),
      room,
    ),
  );

  function mark(resource: number | null): void {
    under.replaceChildren();
    over.replaceChildren();
    if (resource === null || !rows.has(resource)) return;
    const band = (r: number, kind: string) =>
      under.append(s("rect", { x: 0, y: top(r), width: frame.width, height: ROW, class: kind }));
    const own = all.find((r) => r.resource.index === resource)!;
    const asked = new Set(all.filter((r) => r.resource.parent === resource).map((r) => r.resource.index));
    for (const child of asked) if (rows.has(child)) band(child, "row-asked");
    const parent = own.resource.parent;
    if (parent !== null && rows.has(parent)) band(parent, "row-asker");
    band(resource, "row-marked");
    if (parent === null || !rows.has(parent)) return;
    for (const panel of frame.panels) {
      const at = panelScale(frame, panel);
      const request = panel.shown.requests.find((r) => r.resource.index === resource);
      if (!request || request.discovered < frame.domain[0] || request.discovered > frame.domain[1]) continue;
      const x = at(request.discovered);
      const [from, to] = [top(parent) + ROW / 2, top(resource) + ROW / 2];
      over.append(
        s("circle", { cx: x, cy: from, r: 3, class: "arrowhead" }),
        s("path", { d: `M${x} ${from}V${to}`, class: "arrow" }),
        s("path", { d: `M${x - 4} ${to - 7}L${x} ${to - 1}L${x + 4} ${to - 7}Z`, class: "arrowhead" }),
      );
    }
  }

  return {
    height,
    labels: [stripes, under, labels],
    panel: (panel, at) => panel.shown.requests.map((r) => bar(r, top(r.resource.index), at, panel.end)),
    over,
    order,
    mark,
    rowAt: (y) => order[Math.floor(y / ROW)] ?? null,
  };
}

/** `room` is the number of characters that fit. */
function label(r: Request, home: string, y: number, room: number): Child {
  const { resource } = r;
  const path = /^[a-z]+:\/\/[^/]*(.*)$/i.exec(resource.url)?.[1] || resource.url;
  const host = resource.host === home ? "" : clipEnd(resource.host, Math.max(8, Math.floor(room * 0.38)));
  const color = kindColor(resource.kind);
  return s(
    "g",
    { class: `label${r.outcome === "failed" ? " failed" : ""}${resource.afterLoad ? " after" : ""}` },
    s("text", { x: 26, y: y + 13, "text-anchor": "end", class: "number" }, String(resource.index)),
    s("rect", {
      x: 32,
      y: y + 2,
      width: 40,
      height: 14,
      rx: 2,
      fill: color,
      "fill-opacity": 0.22,
      stroke: color,
      "stroke-width": 1,
    }),
    s("text", { x: 52, y: y + 13, "text-anchor": "middle", class: "chip" }, KINDS[resource.kind] ?? "…"),
    s(
      "text",
      { x: TEXT_LEFT, y: y + 13 },
      host && s("tspan", { class: "host" }, `${host} `),
      clip(path, room - host.length - (host ? 1 : 0)),
    ),
  );
}

function bar(r: Request, y: number, at: (ms: number) => number, end: number): Child {
  const pieces = spans(r, end);
  const last = pieces.at(-1)?.to ?? r.discovered;
  const mid = y + ROW / 2;
  return s(
    "g",
    { class: `request ${r.outcome}`, "data-resource": r.resource.index },
    pieces.map(({ phase, from, to }) => {
      const thin = phase === "queued";
      const high = thin ? 5 : BAR;
      return s("rect", {
        x: at(from),
        y: mid - high / 2,
        width: Math.max(0.75, at(to) - at(from)),
        height: high,
        fill: `var(--${phase})`,
        ...(thin && { class: "queued" }),
      });
    }),
    r.used !== null &&
      r.used > last && [
        s("line", { x1: at(last), x2: at(r.used), y1: mid, y2: mid, class: "compute" }),
        s("line", { x1: at(r.used), x2: at(r.used), y1: mid - 4, y2: mid + 4, class: "compute" }),
      ],
    r.outcome === "failed" && s("path", { d: `M${at(last) - 4} ${mid - 4}l8 8m0 -8l-8 8`, class: "cross" }),
  );
}
