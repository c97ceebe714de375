// One page: its figures, its waterfall and its connections, for the two transports chosen.

import { discoveryOrder, waterfall } from "./waterfall.ts";
import { connectionView } from "./connections.ts";
import { saving } from "./charts.ts";
import type { Overview, PageDetail, Request, Shown } from "./data.ts";
import { h, s, type Child } from "./dom.ts";
import { bytes, count, plural, protocol, signed, time } from "./format.ts";
import { assumptions, swatch } from "./overview.ts";
import { KINDS, PHASES, kindColor, spans } from "./phases.ts";
import type { State } from "./state.ts";
import { timeline, type Frame, type Panel } from "./timeline.ts";
import { hideTip, showTip } from "./tooltip.ts";

export interface PageView {
  element: HTMLElement;
  /** Draws what depends on the width; for an element that is in the document. */
  draw: () => void;
  /** Handles a key; whether it was of use. */
  key: (key: string) => boolean;
}

/** Below this width two panels side by side are too narrow to read. */
const SIDE_BY_SIDE_MIN = 1000;
const GAP = 18;

let stacked = false;

export function pageView(overview: Overview, state: State, detail: PageDetail): PageView {
  const page = state.page!;
  const names = overview.summary.transports;
  const here = detail.shown.filter((shown) => shown.network === state.network);
  const chosen = [...new Set([state.x, state.y])].flatMap((t) => here.filter((shown) => shown.transport === t));
  const end = Math.max(1, ...chosen.map(lastMoment));
  let domain: [number, number] = [0, end * 1.01];
  let picked: number | null = null;
  let order: number[] = [];
  let drawn = 0;
  let marks: ((resource: number | null) => void)[] = [];
  const drawings = h("div", { class: "drawings" });
  const dock = h("aside", { class: "dock", hidden: true, "aria-label": "Request" });
  const reset = h("button", { hidden: true, onclick: () => zoom(null) }, "Show all");
  const side = (text: string, on: boolean) =>
    h("button", { "aria-pressed": String(stacked === on), onclick: () => arrange(on) }, text);
  const buttons = h("span", { class: "segmented" });

  function arrange(on: boolean): void {
    stacked = on;
    draw();
  }

  function zoom(next: [number, number] | null): void {
    domain = next ?? [0, end * 1.01];
    reset.hidden = next === null;
    draw();
  }

  function pick(resource: number | null): void {
    picked = resource;
    for (const mark of marks) mark(picked);
    dock.hidden = picked === null;
    if (picked === null) return;
    dock.replaceChildren(h("button", { class: "close", "aria-label": "Close", onclick: () => pick(null) }, "×"), h("div", {}, ...requestTip(chosen, names, picked)));
  }

  function frame(group: Shown[]): Frame {
    const labelWidth = drawn >= 1200 ? 300 : drawn >= 760 ? 230 : 150;
    const each = (drawn - labelWidth - GAP * (group.length - 1) - 2) / group.length;
    const panels = group.map<Panel>((shown, i) => ({ shown, name: protocol(names[shown.transport]!), left: labelWidth + i * (each + GAP), width: each, end: lastMoment(shown) }));
    return { panels, width: drawn, labelWidth, domain };
  }

  const width = () => Math.floor(drawings.getBoundingClientRect().width);

  function draw(): void {
    drawn = width();
    if (drawn === 0 || chosen.length === 0) return;
    const wide = drawn >= SIDE_BY_SIDE_MIN;
    const together = !stacked && wide;
    buttons.hidden = !wide || chosen.length < 2;
    buttons.replaceChildren(side("Side by side", false), side("Stacked", true));
    const groups = together ? [chosen] : chosen.map((shown) => [shown]);
    order = discoveryOrder(frame(chosen).panels);
    marks = [];
    const falls = groups.map((group) => drawWaterfall(frame(group)));
    const views = groups.map((group) => drawConnections(frame(group)));
    drawings.replaceChildren(...falls, ...views);
    for (const mark of marks) mark(picked);
  }

  function drawWaterfall(f: Frame): HTMLElement {
    const own = order.filter((r) => f.panels.some((p) => p.shown.requests.some((q) => q.resource.index === r)));
    const fall = waterfall(f, own);
    marks.push(fall.mark);
    const gestures = {
      move: (event: PointerEvent, y: number) => {
        const resource = fall.rowAt(y);
        fall.mark(resource ?? picked);
        if (resource === null) hideTip();
        else showTip(event.clientX, event.clientY, ...requestTip(chosen, names, resource));
      },
      leave: () => {
        hideTip();
        fall.mark(picked);
      },
      click: (_: PointerEvent, y: number) => pick(fall.rowAt(y) === picked ? null : fall.rowAt(y)),
      zoom,
    };
    const section = timeline(h("h2", {}, "Waterfall"), f, fall, gestures);
    section.dataset["view"] = "waterfall";
    return section;
  }

  function drawConnections(f: Frame): HTMLElement {
    const view = connectionView(f);
    const mark = (resource: number | null) => {
      for (const e of section.querySelectorAll(".mark.marked")) e.classList.remove("marked");
      section.classList.toggle("dim", resource !== null);
      if (resource !== null) for (const e of section.querySelectorAll(`.mark[data-resource="${resource}"]`)) e.classList.add("marked");
    };
    const under = (event: PointerEvent) => {
      const target = event.target as Element;
      const resource = target.closest("[data-resource]")?.getAttribute("data-resource");
      const connection = target.closest("[data-connection]")?.getAttribute("data-connection");
      const box = (event.currentTarget as Element).getBoundingClientRect();
      const panel = f.panels.findLast((p) => event.clientX - box.left >= p.left);
      return { resource: resource == null ? null : Number(resource), connection: connection == null ? null : Number(connection), panel };
    };
    const section: HTMLElement = timeline(h("h2", {}, "Connections"), f, view, {
      move: (event) => {
        const { resource, connection, panel } = under(event);
        mark(resource ?? picked);
        if (resource !== null) showTip(event.clientX, event.clientY, ...requestTip(chosen, names, resource));
        else if (connection !== null && panel) showTip(event.clientX, event.clientY, ...connectionTip(panel, connection));
        else hideTip();
      },
      leave: () => {
        hideTip();
        mark(picked);
      },
      click: (event) => pick(under(event).resource),
      zoom,
    });
    section.dataset["view"] = "connections";
    marks.push(mark);
    return section;
  }

  const { pages } = overview;
  const element = h(
    "main",
    { class: "page" },
    h("h1", {}, pages.title[page] || pages.id[page]!),
    h("p", { class: "muted" }, pages.url[page] !== pages.title[page] && [h("code", { class: "url" }, pages.url[page]!), " · "], `${plural(pages.requests[page]!, "request")} · ${plural(pages.hosts[page]!, "host")} · ${bytes(pages.bytes[page])} · from ${pages.source[page]!}`),
    here.length === 0 ? h("p", { class: "warn" }, "Nothing was loaded on this network.") : figures(overview, state, here),
    chosen.length > 0 && h("div", { class: "bar legendbar" }, buttons, reset, h("span", { class: "muted" }, "Drag across to zoom, double-click to see all; click a request to keep its figures.")),
    chosen.length > 0 && legend(),
    drawings,
    h("section", {}, assumptions(detail.assumptions)),
    dock,
  );
  // Not within the observer: what it draws would be observed at once.
  new ResizeObserver(() => requestAnimationFrame(() => width() !== drawn && draw())).observe(drawings);

  const step = (by: number) => {
    const from = picked === null ? (by > 0 ? -1 : order.length) : order.indexOf(picked);
    pick(order[Math.min(order.length - 1, Math.max(0, from + by))] ?? null);
  };
  return {
    element,
    draw,
    key: (key) => {
      if (key === "ArrowDown") step(1);
      else if (key === "ArrowUp") step(-1);
      else if (key === "Escape" && picked !== null) pick(null);
      else if (key === "Escape" && !reset.hidden) zoom(null);
      else return false;
      return true;
    },
  };
}

function lastMoment(shown: Shown): number {
  const { plt_us, finished_us } = shown.load;
  const times = shown.requests.flatMap((r) => [r.discovered, r.sent, r.complete, r.used]);
  return [...times, (plt_us ?? 0) / 1000, (finished_us ?? 0) / 1000].reduce<number>((a, b) => Math.max(a, b ?? 0), 0);
}

/** The figures of the loads shown, a row a transport. */
function figures(overview: Overview, state: State, here: Shown[]): HTMLElement {
  const first = here.find((shown) => shown.transport === state.x);
  const median = (shown: Shown) => overview.cells[shown.network]![shown.transport]!.medians["plt_us"]![state.page!] ?? null;
  const longest = Math.max(1, ...here.map((shown) => shown.load.plt_us ?? 0));
  const several = here.some((shown) => shown.runs.length > 1);
  const ms = (us: number | null) => time(us === null ? null : us / 1000);
  const head = ["Transport", "Median PLT", "Speed-up", several && "All runs", several ? "Run shown" : "PLT", "First byte", "First paint", "Parsed", "Last resource", "Conns", "Down", "Up", "Sent again", "Dropped", "Where its PLT went"];
  const rows = here.map((shown) => {
    const { load } = shown;
    const speedup = first && shown !== first ? signed(saving(median(first), median(shown))) : "";
    return h(
      "tr",
      {},
      h("th", { scope: "row" }, h("i", { class: "dot", style: `background:var(--t${shown.transport})` }), protocol(overview.summary.transports[shown.transport]!)),
      h("td", { class: "n" }, h("b", {}, ms(median(shown)))),
      h("td", { class: "n" }, h("b", {}, speedup)),
      several && h("td", {}, strip(shown, here)),
      h("td", { class: "n" }, several && h("span", { class: "muted" }, `#${load.run}: `), load.outcome === "complete" ? ms(load.plt_us) : h("span", { class: "warn" }, load.reason ?? load.outcome)),
      [load.first_byte_us, load.first_paint_us, load.parsed_us, load.finished_us].map((us) => h("td", { class: "n" }, ms(us))),
      h("td", { class: "n" }, count(load.connections)),
      h("td", { class: "n" }, bytes(load.bytes_down)),
      h("td", { class: "n" }, bytes(load.bytes_up)),
      h("td", { class: "n", title: `${plural(load.timeouts, "retransmission timeout")}` }, count(load.retransmits)),
      h("td", { class: "n", title: `${load.lost_down + load.lost_up} lost at random, ${load.overflow_down + load.overflow_up} by a full queue` }, count(load.lost_down + load.lost_up + load.overflow_down + load.overflow_up)),
      h("td", { class: "wide" }, critical(shown, longest)),
    );
  });
  const titles = h("tr", {}, head.map((t, i) => t !== false && h("th", { class: i > 0 && i < head.length - 1 ? "n" : "" }, t)));
  return h(
    "section",
    {},
    several && h("p", { class: "muted" }, "Of several runs, the one whose PLT is nearest to their median is shown; all figures to the right of it are that run's."),
    h("div", { class: "scroll" }, h("table", { class: "grid", id: "figures" }, h("thead", {}, titles), h("tbody", {}, rows))),
  );
}

function critical(shown: Shown, longest: number): Child {
  const parts = shown.load.critical;
  if (!parts) return null;
  const spans = Object.keys(PHASES).flatMap((phase) => {
    const us = parts[`${phase}_us`] ?? 0;
    return us > 0 ? [h("span", { style: `width:${(100 * us) / longest}%;background:var(--${phase})`, title: `${PHASES[phase]}: ${time(us / 1000)}` })] : [];
  });
  return h("div", { class: "phasebar small", role: "img", "aria-label": "Parts of the page load time" }, spans);
}

/** Every run's PLT as a dot on one scale; the shown one is filled. */
function strip(shown: Shown, here: Shown[]): Child {
  const all = here.flatMap((other) => other.runs.flatMap(([, us]) => (us === null ? [] : [us])));
  const [min, max, width] = [Math.min(...all), Math.max(...all), 120];
  const at = (us: number) => 6 + ((width - 12) * (us - min)) / Math.max(1, max - min);
  const color = `var(--t${shown.transport})`;
  const dots = shown.runs.map(([run, us]) => us !== null && s("circle", { cx: at(us), cy: 8, r: 3.5, stroke: color, fill: run === shown.load.run ? color : "none" }, s("title", {}, `run ${run}: ${time(us / 1000)}`)));
  return s("svg", { width, height: 16, role: "img", "aria-label": `PLT of ${shown.runs.length} runs` }, dots);
}

function legend(): HTMLElement {
  const phase = (name: string, text: string) => h("span", {}, name === "compute" ? h("i", { class: "swatch line" }) : swatch(name), text);
  const phases = Object.entries(PHASES).map(([name, text]) => phase(name, name === "compute" ? "until used" : text));
  const kinds = Object.entries(KINDS).map(([kind, mark]) => h("span", {}, h("i", { class: "swatch", style: `background:${kindColor(kind)}` }), mark === "…" ? "other" : mark));
  const hatch = h("span", {}, h("i", { class: "swatch hatched" }), "handshake");
  return h("div", { class: "legend" }, h("b", {}, "Waterfall"), phases, h("span", {}, h("em", { class: "muted" }, "after"), " onload does not wait for it"), h("b", {}, "Connections"), hatch, kinds, h("span", { class: "muted" }, "pale: waiting, full: receiving"));
}

/** A request's figures over every transport shown. */
function requestTip(chosen: Shown[], names: string[], index: number): Child[] {
  const requests = chosen.map((shown) => shown.requests.find((r) => r.resource.index === index) ?? null);
  const known = requests.find((r) => r !== null);
  if (!known) return ["not requested"];
  const { resource } = known;
  const asker = resource.parent === null ? null : chosen.flatMap((c) => c.requests).find((r) => r.resource.index === resource.parent);
  const row = (name: Child, value: (r: Request, i: number) => Child, look = "") => {
    const cells = requests.map((r, i) => (r ? value(r, i) : null));
    return cells.some((c) => c !== null && c !== "" && c !== "–") && h("tr", { class: look }, h("th", {}, name), cells.map((c) => h("td", { class: "n" }, c ?? "–")));
  };
  const ends = chosen.map(lastMoment);
  const spent = requests.map((r, i) => (r ? spans(r, ends[i]!) : []));
  const total = (i: number, phase: string) => spent[i]!.filter((p) => p.phase === phase).reduce((sum, p) => sum + p.to - p.from, 0);
  const phases = Object.keys(PHASES).filter((phase) => spent.some((list) => list.some((p) => p.phase === phase)));
  return [
    h("div", { class: "tiphead" }, h("b", {}, `#${index} `), h("span", { class: "url" }, resource.url)),
    h("div", { class: "muted" }, `${resource.kind}${resource.afterLoad ? ", after onload" : ""}`, asker ? [" · asked for by ", h("b", {}, `#${asker.resource.index} `), h("span", { class: "url" }, asker.resource.url.replace(/^[a-z]+:\/\//, ""))] : " · the page itself"),
    h(
      "table",
      { class: "tiptable" },
      h("tr", {}, h("th", {}), chosen.map((shown) => h("th", { class: "n" }, h("i", { class: "dot", style: `background:var(--t${shown.transport})` }), protocol(names[shown.transport]!)))),
      row("Discovered", (r) => time(r.discovered)),
      phases.map((phase) => row([swatch(phase), PHASES[phase]!], (_, i) => (total(i, phase) > 0 ? `+ ${time(total(i, phase))}` : null))),
      row("Complete", (r) => time(r.complete), "sum"),
      row("Used", (r) => time(r.used)),
      row("Outcome", (r) => (r.outcome === "complete" ? String(r.status ?? "") : h("span", { class: "warn" }, r.outcome, r.reason && `: ${r.reason}`))),
      row("Connection", (r) => (r.connection === null ? null : `#${r.connection}`)),
      row("Priority", (r) => String(r.priority)),
      row("Request head", (r) => bytes(r.headUp)),
      row("Response head", (r) => bytes(r.headDown)),
      row("Body", (r) => bytes(r.body)),
    ),
  ];
}

function connectionTip(panel: Panel, id: number): Child[] {
  const c = panel.shown.connections.find((c) => c.id === id);
  if (!c) return [];
  const row = (name: string, value: string | null) => value !== null && h("tr", {}, h("th", {}, name), h("td", { class: "n" }, value));
  const since = (from: number | null, to: number | null) => (from === null || to === null ? null : time(to - from));
  return [
    h("b", {}, `Connection #${c.id}: ${c.host}`),
    h("div", { class: "muted" }, `${c.address} · ${c.protocol}`),
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
