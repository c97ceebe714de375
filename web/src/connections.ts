// The connection view: every connection a rectangle on the time axis, its handshake hatched, every request a mark on
// it. Connections to one host stand together, and a host stands at one height in every panel.

import type { Connection, Request } from "./data.ts";
import { characterWidth, s, type Child } from "./dom.ts";
import { clip } from "./format.ts";
import { kindColor } from "./phases.ts";
import { isWasted } from "./tips.ts";
import type { Body, Frame, Panel } from "./timeline.ts";

interface Placed {
  connection: Connection;
  lanes: Request[][];
  lane: number;
  height: number;
}

const PAD = 5;
const HOST_MIN = 35;

export function connectionView(frame: Frame): Body {
  const placed = new Map<Panel, Map<string, Placed[]>>(frame.panels.map((p) => [p, place(p)]));
  const hosts: string[] = [];
  for (const byHost of placed.values())
    for (const host of byHost.keys()) if (!hosts.includes(host)) hosts.push(host);
  const tops = new Map<string, number>();
  const heights = new Map<string, number>();
  let height = 0;
  for (const host of hosts) {
    const tall = (list: Placed[]) => list.reduce((sum, p) => sum + p.height + 3, 2 * PAD - 3);
    const group = Math.max(HOST_MIN, ...frame.panels.map((p) => tall(placed.get(p)!.get(host) ?? [])));
    tops.set(host, height);
    heights.set(host, group);
    height += group;
  }
  const room = Math.floor((frame.labelWidth - 14) / (1.08 * characterWidth(12)));
  const labels = hosts.map((host, i) => {
    const y = tops.get(host)!;
    const counts = frame.panels.map((p) => (placed.get(p)!.get(host) ?? []).length);
    return [
      i % 2 === 1 && s("rect", { x: 0, y, width: frame.width, height: heights.get(host)!, class: "stripe" }),
      s("text", { x: 6, y: y + 14, class: "hostname" }, clip(host, room)),
      s("text", { x: 6, y: y + 27, class: "host" }, connectionCounts(counts)),
    ];
  });
  return {
    height: Math.max(1, height),
    labels: [hatches(), labels],
    panel: (panel, at) =>
      [...placed.get(panel)!].map(([host, list]) => {
        let y = tops.get(host)! + PAD;
        return list.map((p) => {
          const drawn = rectangle(p, y, at, panel.end);
          y += p.height + 3;
          return drawn;
        });
      }),
  };
}

/** `6 connections`, `6 | 1 connections`. */
function connectionCounts(counts: number[]): string {
  const [a, b] = counts;
  const noun = (n: number) => `connection${n === 1 ? "" : "s"}`;
  return b === undefined || a === b ? `${a} ${noun(a!)}` : `${a} | ${b} ${noun(b)}`;
}

/** The connections of a panel by host, in the order of opening, with their requests in lanes that do not overlap. */
function place(panel: Panel): Map<string, Placed[]> {
  const byHost = new Map<string, Placed[]>();
  for (const connection of [...panel.shown.connections].sort((a, b) => a.opened - b.opened || a.id - b.id)) {
    const mine = panel.shown.requests
      .filter((r) => r.connection === connection.id && r.sent !== null)
      .sort((a, b) => a.sent! - b.sent!);
    const lanes: Request[][] = [];
    for (const r of mine) {
      const free = lanes.find((lane) => (lane.at(-1)!.complete ?? panel.end) <= r.sent!);
      if (free) free.push(r);
      else lanes.push([r]);
    }
    const n = Math.max(1, lanes.length);
    const lane = n === 1 ? 11 : n <= 8 ? 6 : n <= 30 ? 5 : 4;
    const list = byHost.get(connection.host) ?? [];
    list.push({ connection, lanes, lane, height: n * lane + 3 });
    byHost.set(connection.host, list);
  }
  return byHost;
}

/** How it is drawn: dashed if no request had asked for it, and in the colour of what is bad if it was for nothing. */
function look(c: Connection): string {
  return ["connection", c.purpose && "unasked", isWasted(c) && "wasted"].filter(Boolean).join(" ");
}

function rectangle(p: Placed, y: number, at: (ms: number) => number, end: number): Child {
  const c = p.connection;
  const gone = c.closed ?? end;
  const connected = c.connected ?? gone;
  const ready = c.secured ?? connected;
  const box = (from: number, to: number, look: string) =>
    to > from &&
    s("rect", { x: at(from), y, width: Math.max(1, at(to) - at(from)), height: p.height, class: look });
  return s(
    "g",
    { class: look(c), "data-connection": c.id },
    box(c.opened, connected, "handshake tcp"),
    box(connected, ready, "handshake tls"),
    box(ready, gone, "open"),
    p.lanes.map((lane, i) =>
      lane.map((r) => {
        const top = y + 1.5 + i * p.lane + 0.5;
        const high = p.lane - 1;
        const first = r.firstByte ?? r.complete ?? end;
        const last = r.complete ?? end;
        const color = kindColor(r.resource.kind);
        const part = (from: number, to: number, opacity: number) =>
          s("rect", {
            x: at(from),
            y: top,
            width: Math.max(0.75, at(to) - at(from)),
            height: high,
            fill: color,
            "fill-opacity": opacity,
          });
        return s(
          "g",
          { "data-resource": r.resource.index, class: "mark" },
          part(r.sent!, first, 0.3),
          last > first && part(first, last, 1),
        );
      }),
    ),
  );
}

function hatches(): Child {
  const hatch = (id: string, color: string) =>
    s(
      "pattern",
      { id, width: 5, height: 5, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" },
      s("rect", { width: 5, height: 5, fill: `var(${color})`, "fill-opacity": 0.18 }),
      s("line", { x1: 1, x2: 1, y1: 0, y2: 5, stroke: `var(${color})`, "stroke-width": 2 }),
    );
  return s("defs", {}, hatch("hatch-tcp", "--connect"), hatch("hatch-tls", "--tls"));
}
