// What is looked at, kept in the address so that a link leads to it:
// #network=seed&x=http1&y=spdy3.1&metric=plt_us&scale=log&page=ID

import type { Overview } from "./data.ts";

export interface Metric {
  key: string;
  label: string;
  unit: "time" | "bytes" | "count";
}

export const METRICS: Metric[] = [
  { key: "plt_us", label: "Page load time", unit: "time" },
  { key: "first_paint_us", label: "First paint", unit: "time" },
  { key: "first_byte_us", label: "First byte", unit: "time" },
  { key: "parsed_us", label: "Document parsed", unit: "time" },
  { key: "finished_us", label: "Last resource", unit: "time" },
  { key: "compute_us", label: "Main thread busy", unit: "time" },
  { key: "connections", label: "Connections", unit: "count" },
  { key: "lookups", label: "DNS look-ups", unit: "count" },
  { key: "bytes_down", label: "Bytes down", unit: "bytes" },
  { key: "bytes_up", label: "Bytes up", unit: "bytes" },
  { key: "packets_down", label: "Packets down", unit: "count" },
  { key: "packets_up", label: "Packets up", unit: "count" },
  { key: "retransmits", label: "Segments sent again", unit: "count" },
  { key: "timeouts", label: "Retransmission timeouts", unit: "count" },
  { key: "overflow", label: "Packets dropped by a full queue", unit: "count" },
  { key: "queue_max_down_bytes", label: "Longest queue down", unit: "bytes" },
];

export interface State {
  network: number;
  /** Transports by index. */
  x: number;
  y: number;
  metric: Metric;
  log: boolean;
  page: number | null;
}

/** What the address says; what it does not say, or says wrongly, is the first of its kind. */
export function fromAddress(overview: Overview): State {
  const asked = new URLSearchParams(location.hash.slice(1));
  const { networks, transports } = overview.summary;
  const among = (name: string, names: string[], otherwise: number) => {
    const index = names.indexOf(asked.get(name) ?? "");
    return index < 0 ? otherwise : index;
  };
  const x = among("x", transports, 0);
  const y = among("y", transports, transports.length > 1 ? (x === 1 ? 0 : 1) : 0);
  const page = overview.pages.id.indexOf(asked.get("page") ?? "");
  return {
    network: among(
      "network",
      networks.map((n) => n.network),
      0,
    ),
    x,
    y,
    metric: METRICS.find((m) => m.key === asked.get("metric")) ?? METRICS[0]!,
    log: asked.get("scale") === "log",
    page: page < 0 ? null : page,
  };
}

/** The address that leads to `state`. */
export function toAddress(overview: Overview, state: State): string {
  const { networks, transports } = overview.summary;
  const said = new URLSearchParams();
  if (state.page !== null) said.set("page", overview.pages.id[state.page]!);
  said.set("network", networks[state.network]!.network);
  if (transports.length > 2) {
    said.set("x", transports[state.x]!);
    said.set("y", transports[state.y]!);
  } else if (state.x > state.y) {
    said.set("x", transports[state.x]!);
  }
  if (state.metric !== METRICS[0]) said.set("metric", state.metric.key);
  if (state.log) said.set("scale", "log");
  return `#${said}`;
}
