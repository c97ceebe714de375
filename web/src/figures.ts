// The figures of one page, a row a transport.

import type { Load, Overview, Shown } from "./data.ts";
import { h, s, type Child } from "./dom.ts";
import { bytes, count, plural, signed, time } from "./format.ts";
import { saving } from "./observations.ts";
import { cell, muted, transportName } from "./parts.ts";
import { PHASES } from "./phases.ts";
import type { State } from "./state.ts";

const NOTE =
  "Of several runs, the one whose PLT is nearest to their median is shown; " +
  "all figures to the right of it are that run's.";

/** `here` are the loads shown on the network chosen. */
export function figures(overview: Overview, state: State, here: Shown[]): HTMLElement {
  const first = here.find((shown) => shown.transport === state.x);
  const median = (shown: Shown) =>
    overview.cells[shown.network]![shown.transport]!.medians["plt_us"]![state.page!] ?? null;
  const speedup = (shown: Shown) => saving(first && median(first), median(shown));
  const longest = Math.max(1, ...here.map((shown) => shown.load.plt_us ?? 0));
  const several = here.some((shown) => shown.runs.length > 1);
  const columns: [string, (shown: Shown) => HTMLElement][] = [
    ["Median PLT", (shown) => cell(h("b", {}, ms(median(shown))))],
    ["Speed-up", (shown) => cell(shown !== first && h("b", {}, signed(speedup(shown))))],
    [several ? "Run shown" : "PLT", ({ load }) => cell(several && muted(`#${load.run}: `), plt(load))],
    ["First byte", ({ load }) => cell(ms(load.first_byte_us))],
    ["First paint", ({ load }) => cell(ms(load.first_paint_us))],
    ["Parsed", ({ load }) => cell(ms(load.parsed_us))],
    ["Last resource", ({ load }) => cell(ms(load.finished_us))],
    ["Conns", ({ load }) => cell(count(load.connections))],
    ["Down", ({ load }) => cell(bytes(load.bytes_down))],
    ["Up", ({ load }) => cell(bytes(load.bytes_up))],
    ["Sent again", ({ load }) => sentAgain(load)],
    ["Dropped", ({ load }) => dropped(load)],
    ["Where its PLT went", (shown) => h("td", { class: "wide" }, critical(shown.load, longest))],
  ];
  if (several) columns.splice(2, 0, ["All runs", (shown) => h("td", {}, strip(shown, here))]);
  const last = columns.length - 1;
  const head = columns.map(([title], i) => h("th", { class: i < last ? "n" : "" }, title));
  const row = (shown: Shown) => {
    const name = h("th", { scope: "row" }, transportName(overview, shown.transport));
    return h(
      "tr",
      {},
      name,
      columns.map(([, make]) => make(shown)),
    );
  };
  const table = h(
    "table",
    { class: "grid", id: "figures" },
    h("thead", {}, h("tr", {}, h("th", {}, "Transport"), head)),
    h("tbody", {}, here.map(row)),
  );
  return h("section", {}, several && h("p", { class: "muted" }, NOTE), h("div", { class: "scroll" }, table));
}

function ms(us: number | null): string {
  return time(us === null ? null : us / 1000);
}

/** A time that was reached without everything is not one to compare. */
function plt(load: Load): Child {
  if (load.outcome === "complete") return ms(load.plt_us);
  return h("span", { class: "warn" }, load.reason ?? load.outcome);
}

function sentAgain(load: Load): HTMLElement {
  return h(
    "td",
    { class: "n", title: plural(load.timeouts, "retransmission timeout") },
    count(load.retransmits),
  );
}

function dropped(load: Load): HTMLElement {
  const lost = load.lost_down + load.lost_up;
  const overflow = load.overflow_down + load.overflow_up;
  return h(
    "td",
    { class: "n", title: `${lost} lost at random, ${overflow} by a full queue` },
    count(lost + overflow),
  );
}

/** Where a PLT went, on one scale for all transports. */
function critical({ critical }: Load, longest: number): Child {
  if (!critical) return null;
  const spans = Object.entries(PHASES).map(([phase, name]) => {
    const us = critical[`${phase}_us`] ?? 0;
    const look = `width:${(100 * us) / longest}%;background:var(--${phase})`;
    return us > 0 && h("span", { style: look, title: `${name}: ${ms(us)}` });
  });
  return h(
    "div",
    { class: "phasebar small", role: "img", "aria-label": "Parts of the page load time" },
    spans,
  );
}

/** Every run's PLT as a dot on one scale; the shown one is filled. */
function strip(shown: Shown, here: Shown[]): Child {
  const plts = here.flatMap((other) => other.runs.flatMap(([, us]) => (us === null ? [] : [us])));
  const [min, max] = plts.reduce(([a, b], us) => [Math.min(a, us), Math.max(b, us)], [Infinity, 0]);
  const width = 120;
  const at = (us: number) => 6 + ((width - 12) * (us - min)) / Math.max(1, max - min);
  const color = `var(--t${shown.transport})`;
  const mark = ([run, us]: [number, number | null]) => {
    if (us === null) return null;
    const fill = run === shown.load.run ? color : "none";
    const title = s("title", {}, `run ${run}: ${ms(us)}`);
    return s("circle", { cx: at(us), cy: 8, r: 3.5, stroke: color, fill }, title);
  };
  const label = `PLT of ${plural(shown.runs.length, "run")}`;
  return s("svg", { width, height: 16, role: "img", "aria-label": label }, shown.runs.map(mark));
}
