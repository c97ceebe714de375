// What a request's time is spent on, in the names and colours of browsers' own tools.

import type { Request } from "./data.ts";

/** Also the names of CSS colours. */
export const PHASES: Record<string, string> = {
  queued: "Queued",
  dns: "DNS",
  connect: "Connect (TCP)",
  tls: "TLS",
  wait: "Wait for first byte",
  receive: "Receive",
  compute: "Compute",
};

export interface Span {
  phase: string;
  from: number;
  to: number;
}

/** A request's life from discovery to its last byte, without gaps. What is not over by `end` ends there. */
export function spans(r: Request, end: number): Span[] {
  const out: Span[] = [];
  let now = r.discovered;
  const until = (phase: string, to: number | null) => {
    if (to === null || to <= now) return;
    out.push({ phase, from: now, to });
    now = to;
  };
  until("queued", r.dnsStart);
  if (r.dnsStart !== null) until("dns", r.dnsEnd ?? end);
  until("queued", r.connectStart);
  if (r.connectStart !== null) until("connect", r.connectEnd ?? end);
  if (r.connectEnd !== null) until("tls", r.tlsEnd);
  until("queued", r.sent ?? (r.outcome === "pending" ? end : r.complete));
  if (r.sent !== null) until("wait", r.firstByte ?? r.complete ?? end);
  if (r.firstByte !== null) until("receive", r.complete ?? end);
  return out;
}

/** Short marks of resource kinds; the kind is also the name of a CSS colour. */
export const KINDS: Record<string, string> = {
  document: "HTML",
  style: "CSS",
  script: "JS",
  image: "IMG",
  font: "FONT",
  xhr: "XHR",
  media: "AV",
  other: "…",
};

/** The colour of a kind. */
export function kindColor(kind: string): string {
  return `var(--${kind in KINDS ? kind : "other"})`;
}
