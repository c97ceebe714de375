// What the tooltip and the dock say of a request and of a connection.

import type { Connection, Purpose, Request, Shown } from "./data.ts";
import { h, type Child } from "./dom.ts";
import { bytes, clip, count, protocol, time } from "./format.ts";
import { dot, swatch } from "./parts.ts";
import { PHASES, spans } from "./phases.ts";
import type { Panel } from "./timeline.ts";

/** When nothing happens any more in a load, in ms. */
export function lastMoment(shown: Shown): number {
  const { plt_us, finished_us } = shown.load;
  const times = shown.requests.flatMap((r) => [r.discovered, r.sent, r.complete, r.used]);
  return [...times, (plt_us ?? 0) / 1000, (finished_us ?? 0) / 1000].reduce<number>(
    (a, b) => Math.max(a, b ?? 0),
    0,
  );
}

/** A request's figures over every transport shown. */
export function requestTip(chosen: Shown[], names: string[], index: number): Child[] {
  const requests = chosen.map((shown) => shown.requests.find((r) => r.resource.index === index) ?? null);
  const known = requests.find((r) => r !== null);
  if (!known) return ["not requested"];
  const { resource } = known;
  const asker =
    resource.parent === null
      ? null
      : chosen.flatMap((c) => c.requests).find((r) => r.resource.index === resource.parent);
  const row = (name: Child, value: (r: Request, i: number) => Child, look = "") => {
    const cells = requests.map((r, i) => (r ? value(r, i) : null));
    return (
      cells.some((c) => c !== null && c !== "" && c !== "–") &&
      h(
        "tr",
        { class: look },
        h("th", {}, name),
        cells.map((c) => h("td", { class: "n" }, c ?? "–")),
      )
    );
  };
  const ends = chosen.map(lastMoment);
  const spent = requests.map((r, i) => (r ? spans(r, ends[i]!) : []));
  const total = (i: number, phase: string) =>
    spent[i]!.filter((p) => p.phase === phase).reduce((sum, p) => sum + p.to - p.from, 0);
  const phases = Object.keys(PHASES).filter((phase) =>
    spent.some((list) => list.some((p) => p.phase === phase)),
  );
  return [
    h("div", { class: "tiphead" }, h("b", {}, `#${index} `), h("span", { class: "url" }, resource.url)),
    h(
      "div",
      { class: "muted" },
      `${resource.kind}${resource.afterLoad ? ", after onload" : ""}`,
      asker
        ? [
            " · asked for by ",
            h("b", {}, `#${asker.resource.index} `),
            h("span", { class: "url" }, clip(asker.resource.url.replace(/^[a-z]+:\/\//, ""), 90)),
          ]
        : " · the page itself",
    ),
    h(
      "table",
      { class: "tiptable" },
      h(
        "tr",
        {},
        h("th", {}),
        chosen.map((shown) =>
          h("th", { class: "n" }, dot(shown.transport), protocol(names[shown.transport]!)),
        ),
      ),
      row("Discovered", (r) => time(r.discovered)),
      phases.map((phase) =>
        row([swatch(phase), PHASES[phase]!], (_, i) =>
          total(i, phase) > 0 ? `+ ${time(total(i, phase))}` : null,
        ),
      ),
      row("Complete", (r) => time(r.complete), "sum"),
      row("Used", (r) => time(r.used)),
      row("Outcome", (r) =>
        r.outcome === "complete"
          ? String(r.status ?? "")
          : h("span", { class: "warn" }, r.outcome, r.reason && `: ${r.reason}`),
      ),
      row("Connection", (r) => (r.connection === null ? null : `#${r.connection}`)),
      row("Priority", (r) => String(r.priority)),
      row("Request head", (r) => (r.headUp > 0 ? bytes(r.headUp) : null)),
      row("Response head", (r) => (r.headDown > 0 ? bytes(r.headDown) : null)),
      row("Body", (r) => bytes(r.body)),
    ),
  ];
}

const PURPOSES: Record<Purpose, string> = {
  speculative: "opened ahead of need",
  spare: "opened beside one that took long",
  alternate: "opened to another address, beside one that took long",
};

/** Whether it was opened unasked and carried nothing. */
export function isWasted(c: Connection): boolean {
  return c.purpose !== null && c.requests === 0;
}

/** Why it was opened though no request waited for it, and whether that was of use. */
function purposeText(c: Connection): string {
  return `${PURPOSES[c.purpose!]}${isWasted(c) ? ", for nothing" : ""}`;
}

/** A connection's figures. */
export function connectionTip(panel: Panel, id: number): Child[] {
  const c = panel.shown.connections.find((c) => c.id === id);
  if (!c) return [];
  const row = (name: string, value: string | null) =>
    value !== null && h("tr", {}, h("th", {}, name), h("td", { class: "n" }, value));
  const since = (from: number | null, to: number | null) =>
    from === null || to === null ? null : time(to - from);
  return [
    h("b", {}, `Connection #${c.id}: ${c.host}`),
    h("div", { class: "muted" }, `${c.address} · ${c.protocol}`),
    c.purpose && h("div", { class: isWasted(c) ? "warn" : "" }, purposeText(c)),
    h(
      "table",
      { class: "tiptable" },
      row("Opened", time(c.opened)),
      row("TCP handshake", since(c.opened, c.connected) ?? "never done"),
      row("TLS handshake", since(c.connected, c.secured)),
      row("Closed", c.closed === null ? "open at the end" : time(c.closed)),
      row("Requests", count(c.requests)),
      row("Payload down", bytes(c.bytesDown)),
      row("Payload up", bytes(c.bytesUp)),
      row("Segments down", count(c.segmentsDown)),
      row("Sent again", count(c.retransmits)),
      row("Timeouts", count(c.timeouts)),
    ),
  ];
}
