// What the browser knew of a page's hosts when the loads shown began, and what came of it.

import type { KnownHost, Shown } from "./data.ts";
import { h, type Child } from "./dom.ts";
import { count, percent, protocol } from "./format.ts";
import { cell, dot } from "./parts.ts";

const NOTE =
  "Expected: connections that the page needs from the host (learned), or the share of visits that used it (successor). " +
  "Opens: connections before the document is there, on the page's own host with the one that the document takes.";

/** A table of hosts, if a browser of the loads chosen goes by what it has learned. */
export function knowledge(chosen: Shown[], names: string[]): Child {
  if (chosen.every((shown) => shown.known === undefined)) return null;
  const hosts = [...new Set(chosen.flatMap((shown) => (shown.known ?? []).map((known) => known.host)))];
  const title = h("h2", {}, "What the browser had learned");
  if (hosts.length === 0) {
    return h("section", {}, title, h("p", { class: "muted" }, "Nothing of this page's hosts, before these loads."));
  }
  const expects = chosen.some((shown) => (shown.known ?? []).some((known) => known.estimates.length > 0));
  const pipelines = chosen.some((shown) => (shown.known ?? []).some((known) => known.pipelining));
  const columns = [...(expects ? ["Expected", "Opens", "Opened", "Used"] : []), ...(pipelines ? ["Pipelining"] : [])];
  const above = chosen.map((shown) =>
    h("th", { colspan: columns.length, class: "n" }, dot(shown.transport), protocol(names[shown.transport]!)),
  );
  const heads = chosen.flatMap(() => columns.map((column) => h("th", { class: "n" }, column)));
  const row = (host: string) =>
    h(
      "tr",
      {},
      h("th", { scope: "row" }, host),
      chosen.flatMap((shown) => cells(shown, host, expects, pipelines)),
    );
  const table = h(
    "table",
    { class: "grid", id: "known" },
    h("thead", {}, h("tr", {}, h("th", {}), above), h("tr", {}, h("th", {}, "Host"), heads)),
    h("tbody", {}, hosts.map(row)),
  );
  return h(
    "section",
    {},
    title,
    expects && h("p", { class: "muted" }, NOTE),
    h("div", { class: "scroll" }, table),
  );
}

function cells(shown: Shown, host: string, expects: boolean, pipelines: boolean): HTMLElement[] {
  const known = shown.known?.find((known) => known.host === host);
  // A connection is named by its host and port, an origin by scheme and host.
  const name = host.replace(/^[a-z]+:\/\//, "");
  const ahead = shown.connections.filter(
    (c) => c.purpose === "speculative" && c.host.replace(/:\d+$/, "") === name,
  );
  const estimate = known?.estimates[0];
  const opens = estimate && (estimate.opens > 0 ? count(estimate.opens) : estimate.resolves ? "the name" : "nothing");
  return [
    ...(expects
      ? [
          cell(expected(known)),
          cell(opens ?? "–"),
          cell(count(ahead.length)),
          cell(count(ahead.filter((c) => c.requests > 0).length)),
        ]
      : []),
    ...(pipelines ? [cell(trust(known))] : []),
  ];
}

function expected(known: KnownHost | undefined): string {
  const [estimate] = known?.estimates ?? [];
  if (!estimate) return "–";
  return estimate.by === "learned" ? estimate.expected.toFixed(2) : percent(100 * estimate.expected, 0);
}

/** `green, proven`, `red, owes 60`, `yellow; image owes 250`. */
function trust(known: KnownHost | undefined): string {
  const pipelining = known?.pipelining;
  if (!pipelining) return "not tried";
  const classes = Object.entries(pipelining.classes).map(([name, penalty]) => `; ${name} owes ${count(penalty)}`);
  return [
    pipelining.standing,
    pipelining.is_proven && ", proven",
    pipelining.penalty > 0 && `, owes ${count(pipelining.penalty)}`,
    ...classes,
  ]
    .filter(Boolean)
    .join("");
}
