// One page: its figures, its waterfall and its connections, for the two transports chosen.

import { connectionView } from "./connections.ts";
import { pageName, type Overview, type PageDetail, type Shown } from "./data.ts";
import { h, type Child } from "./dom.ts";
import { figures } from "./figures.ts";
import { bytes, plural, protocol } from "./format.ts";
import { knowledge } from "./known.ts";
import { assumptions, swatch } from "./parts.ts";
import { KINDS, PHASES, kindColor } from "./phases.ts";
import type { State } from "./state.ts";
import { connectionTip, lastMoment, requestTip } from "./tips.ts";
import { timeline, type Frame, type Panel } from "./timeline.ts";
import { hideTip, showTip } from "./tooltip.ts";
import { discoveryOrder, waterfall } from "./waterfall.ts";

/** Below this width two panels side by side are too narrow to read. */
const SIDE_BY_SIDE_MIN = 1000;
const GAP = 18;

/** Kept from page to page. */
let stacked = false;

export class PageView {
  readonly element: HTMLElement;
  /** The loads drawn: at most one each of the two transports chosen. */
  private readonly chosen: Shown[];
  private readonly names: string[];
  private readonly drawings = h("div", { class: "drawings" });
  private readonly dock = h("aside", { class: "dock", hidden: true, "aria-label": "Request" });
  private readonly reset = h("button", { hidden: true, onclick: () => this.zoom(null) }, "Show all");
  private readonly buttons = h("span", { class: "segmented" });
  private zoomed: [number, number] | null = null;
  /** The resource whose figures are kept. */
  private picked: number | null = null;
  private order: number[] = [];
  private drawn = 0;
  private marks: ((resource: number | null) => void)[] = [];

  constructor(overview: Overview, state: State, detail: PageDetail) {
    const here = detail.shown.filter((shown) => shown.network === state.network);
    this.names = overview.summary.transports;
    this.chosen = [...new Set([state.x, state.y])].flatMap((t) => here.filter((s) => s.transport === t));
    const some = this.chosen.length > 0;
    const hint = "Drag across to zoom, double-click to see all; click a request to keep its figures.";
    this.element = h(
      "main",
      { class: "page" },
      heading(overview, state.page!),
      some
        ? figures(overview, state, here)
        : h("p", { class: "warn" }, "Nothing was loaded on this network."),
      some &&
        h("div", { class: "bar legendbar" }, this.buttons, this.reset, h("span", { class: "muted" }, hint)),
      some && legend(this.chosen.some((shown) => shown.connections.some((c) => c.purpose !== null))),
      this.drawings,
      knowledge(this.chosen, this.names),
      h("section", {}, assumptions(detail.assumptions)),
      this.dock,
    );
    // Not within the observer: what it draws would be observed at once.
    const redraw = () => this.width() !== this.drawn && this.draw();
    new ResizeObserver(() => requestAnimationFrame(redraw)).observe(this.drawings);
  }

  /** Draws what depends on the width; for an element that is in the document. */
  draw(): void {
    this.drawn = this.width();
    if (this.drawn === 0 || this.chosen.length === 0) return;
    const wide = this.drawn >= SIDE_BY_SIDE_MIN;
    this.buttons.hidden = !wide || this.chosen.length < 2;
    this.buttons.replaceChildren(this.side("Side by side", false), this.side("Stacked", true));
    const groups = wide && !stacked ? [this.chosen] : this.chosen.map((shown) => [shown]);
    this.order = discoveryOrder(this.frame(this.chosen).panels);
    this.marks = [];
    const falls = groups.map((group) => this.waterfall(this.frame(group)));
    const views = groups.map((group) => this.connections(this.frame(group)));
    this.drawings.replaceChildren(...falls, ...views);
    for (const mark of this.marks) mark(this.picked);
  }

  /** Handles a key; whether it was of use. */
  key(key: string): boolean {
    if (key === "ArrowDown") this.step(1);
    else if (key === "ArrowUp") this.step(-1);
    else if (key === "Escape" && this.picked !== null) this.pick(null);
    else if (key === "Escape" && this.zoomed !== null) this.zoom(null);
    else return false;
    return true;
  }

  private width(): number {
    return Math.floor(this.drawings.getBoundingClientRect().width);
  }

  private side(text: string, on: boolean): HTMLElement {
    const arrange = () => {
      stacked = on;
      this.draw();
    };
    return h("button", { "aria-pressed": String(stacked === on), onclick: arrange }, text);
  }

  private zoom(to: [number, number] | null): void {
    this.zoomed = to;
    this.reset.hidden = to === null;
    this.draw();
  }

  private step(by: number): void {
    const from = this.picked === null ? (by > 0 ? -1 : this.order.length) : this.order.indexOf(this.picked);
    this.pick(this.order[Math.min(this.order.length - 1, Math.max(0, from + by))] ?? null);
  }

  private pick(resource: number | null): void {
    this.picked = resource;
    for (const mark of this.marks) mark(resource);
    this.dock.hidden = resource === null;
    if (resource === null) return;
    this.dock.replaceChildren(
      h("button", { class: "close", "aria-label": "Close", onclick: () => this.pick(null) }, "×"),
      h("div", {}, ...requestTip(this.chosen, this.names, resource)),
    );
  }

  private tip(event: PointerEvent, resource: number): void {
    showTip(event.clientX, event.clientY, ...requestTip(this.chosen, this.names, resource));
  }

  private frame(group: Shown[]): Frame {
    const labelWidth = this.drawn >= 1200 ? 300 : this.drawn >= 760 ? 230 : 150;
    const each = (this.drawn - labelWidth - GAP * (group.length - 1) - 2) / group.length;
    const panels = group.map<Panel>((shown, i) => ({
      shown,
      name: protocol(this.names[shown.transport]!),
      left: labelWidth + i * (each + GAP),
      width: each,
      end: lastMoment(shown),
    }));
    const end = Math.max(1, ...this.chosen.map(lastMoment));
    return { panels, width: this.drawn, labelWidth, domain: this.zoomed ?? [0, end * 1.01] };
  }

  private waterfall(frame: Frame): HTMLElement {
    const own = new Set(frame.panels.flatMap((p) => p.shown.requests.map((r) => r.resource.index)));
    const fall = waterfall(
      frame,
      this.order.filter((resource) => own.has(resource)),
    );
    this.marks.push(fall.mark);
    const section = timeline(h("h2", {}, "Waterfall"), frame, fall, {
      move: (event, y) => {
        const resource = fall.rowAt(y);
        fall.mark(resource ?? this.picked);
        if (resource === null) hideTip();
        else this.tip(event, resource);
      },
      leave: () => {
        hideTip();
        fall.mark(this.picked);
      },
      click: (_, y) => this.pick(fall.rowAt(y) === this.picked ? null : fall.rowAt(y)),
      zoom: (to) => this.zoom(to),
    });
    section.dataset["view"] = "waterfall";
    return section;
  }

  private connections(frame: Frame): HTMLElement {
    const section = timeline(h("h2", {}, "Connections"), frame, connectionView(frame), {
      move: (event) => {
        const { resource, connection, panel } = under(event, frame);
        mark(resource ?? this.picked);
        if (resource !== null) this.tip(event, resource);
        else if (connection === null || !panel) hideTip();
        else showTip(event.clientX, event.clientY, ...connectionTip(panel, connection));
      },
      leave: () => {
        hideTip();
        mark(this.picked);
      },
      click: (event) => this.pick(under(event, frame).resource),
      zoom: (to) => this.zoom(to),
    });
    const mark = (resource: number | null) => {
      section.classList.toggle("dim", resource !== null);
      for (const e of section.querySelectorAll<SVGElement>(".mark")) {
        e.classList.toggle("marked", e.dataset["resource"] === String(resource));
      }
    };
    section.dataset["view"] = "connections";
    this.marks.push(mark);
    return section;
  }
}

/** What the pointer is over in a connection view. */
function under(event: PointerEvent, frame: Frame) {
  const number = (name: string) => {
    const holder = (event.target as Element).closest(`[${name}]`);
    return holder && Number(holder.getAttribute(name));
  };
  const x = event.clientX - (event.currentTarget as Element).getBoundingClientRect().left;
  const panel = frame.panels.findLast((p) => x >= p.left);
  return { resource: number("data-resource"), connection: number("data-connection"), panel };
}

function heading(overview: Overview, page: number): Child {
  const { pages } = overview;
  const facts = [
    plural(pages.requests[page]!, "request"),
    plural(pages.hosts[page]!, "host"),
    bytes(pages.bytes[page]),
    `from ${pages.source[page]!}`,
  ];
  const address = h("code", { class: "url" }, pages.url[page]!);
  return [
    h("h1", {}, pageName(overview, page)),
    h("p", { class: "muted" }, pages.url[page] !== pages.title[page] && [address, " · "], facts.join(" · ")),
  ];
}

function legend(unasked: boolean): HTMLElement {
  const phase = (name: string, text: string) =>
    h("span", {}, name === "compute" ? h("i", { class: "swatch line" }) : swatch(name), text);
  const phases = Object.entries(PHASES).map(([name, text]) =>
    phase(name, name === "compute" ? "until used" : text),
  );
  const kinds = Object.entries(KINDS).map(([kind, mark]) =>
    h(
      "span",
      {},
      h("i", { class: "swatch", style: `background:${kindColor(kind)}` }),
      mark === "…" ? "other" : mark,
    ),
  );
  const hatch = h("span", {}, h("i", { class: "swatch hatched" }), "handshake");
  return h(
    "div",
    { class: "legend" },
    h("b", {}, "Waterfall"),
    phases,
    h("span", {}, h("em", { class: "muted" }, "after"), " onload does not wait for it"),
    h("b", {}, "Connections"),
    hatch,
    kinds,
    h("span", { class: "muted" }, "pale: waiting, full: receiving"),
    unasked && h("span", {}, h("i", { class: "swatch unasked" }), "no request had asked for it"),
    unasked && h("span", {}, h("i", { class: "swatch unasked wasted" }), "and it carried none"),
  );
}
