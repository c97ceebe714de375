// The headline: who is faster, by how much, how sure, why, and under which conditions.

import {
  pageName,
  type Comparison,
  type Estimate,
  type NetworkSummary,
  type Overview,
  type PagePair,
  type Problem,
  type TransportSummary,
} from "./data.ts";
import { h, s, type Child } from "./dom.ts";
import { bytes, count, mean, percent, plural, protocol, signed, time } from "./format.ts";
import { assumptions, cell, folded, muted, sentences, swatch, transportName } from "./parts.ts";
import { PHASES } from "./phases.ts";
import { toAddress, type State } from "./state.ts";

export function headline(overview: Overview, state: State): Child[] {
  const network = overview.summary.networks[state.network]!;
  const comparison = spokenOf(overview, state);
  const accounts = sentences("Ahead of need", network.accounts ?? []);
  const verdict = comparison ? compared(overview, network, comparison) : alone(network);
  return [
    h("section", { class: "hero" }, h("div", {}, verdict, accounts), phaseBars(network)),
    h("section", {}, h("h2", {}, "Every network and transport"), table(overview, state)),
    h("section", { class: "two" }, conditions(overview, network), caveats(overview)),
  ];
}

/** The comparison that the headline speaks of: the one chosen if there is one, else the first. */
function spokenOf(overview: Overview, state: State): Comparison | undefined {
  const { comparisons } = overview.summary.networks[state.network]!;
  const name = (index: number) => overview.summary.transports[index]!;
  return comparisons.find((c) => c.other === name(state.y) || c.other === name(state.x)) ?? comparisons[0];
}

function compared(overview: Overview, network: NetworkSummary, c: Comparison): Child[] {
  const { unit } = overview.summary;
  const m = c.mean_speedup_pct;
  const sure = m && m.low === null ? `Too few ${unit}s for 95 % intervals.` : "Brackets hold 95 % intervals.";
  const faster = [
    h("b", {}, `${count(c.faster)} of ${count(c.pairs)}`),
    ` (${percent(share(c), 0)}), ${count(c.slower)} slower`,
  ];
  const p = c.sign_test_p;
  const facts: [string, Child][] = [
    ["mean speed-up", estimate(m, signed)],
    ["median speed-up", estimate(c.median_speedup_pct, signed)],
    [`${unit}s faster`, faster],
  ];
  if (p !== null) facts.push(["sign test", `p ${p < 0.001 ? "< 0.001" : `= ${p.toFixed(3)}`}`]);
  const there = c.published;
  if (there) {
    const figure = h("b", {}, signed(there.mean_speedup_pct, 0));
    facts.push(["published", [figure, ` ${there.figure} (${there.source})`]]);
  }
  const how = `Paired by ${unit} on network ${network.network}; positive means ${protocol(c.other)} is faster. ${sure}`;
  const rows = facts.map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]);
  return [
    h("h1", {}, claim(c)),
    h("p", { class: "muted" }, how),
    h("dl", { class: "facts" }, rows),
    sentences("Why", c.why),
    sentences("What differs from the published conditions", there?.differs ?? []),
  ];
}

/** The comparison in one sentence, which claims a difference only where the interval does. */
function claim(c: Comparison): Child[] {
  const [first, other] = [protocol(c.first), protocol(c.other)];
  const m = c.mean_speedup_pct;
  if (!m) return [`Nothing loaded over both ${first} and ${other}`];
  if (m.low !== null && m.high !== null && m.low <= 0 && m.high >= 0) {
    return [`No clear difference between ${other} and ${first}`];
  }
  const less = m.value >= 0;
  const size = `${percent(Math.abs(m.value))} ${less ? "less" : "more"} time`;
  return [`${other} takes `, h("strong", { class: less ? "good" : "bad" }, size), ` than ${first}`];
}

/** The headline of a run with one transport. */
function alone({ transports: [t] }: NetworkSummary): Child {
  return t ? h("h1", {}, `${protocol(t.transport)}: median page load time ${time(t.plt_ms?.value)}`) : null;
}

/** Percent of the pairs in which the other is faster. */
function share(c: Comparison): number {
  return (100 * c.faster) / Math.max(1, c.pairs);
}

/** `**4.71 s** [4.52, 4.93]`. */
function estimate(e: Estimate | null, show: (value: number) => string): Child[] {
  if (!e) return ["–"];
  const known = e.low !== null && e.high !== null;
  const interval = known && h("span", { class: "muted interval" }, ` [${show(e.low!)}, ${show(e.high!)}]`);
  return [h("b", {}, show(e.value)), interval];
}

/** Where the mean page load time goes, one bar a transport, on one scale. */
function phaseBars({ transports }: NetworkSummary): Child {
  const total = (t: TransportSummary) => t.phases.reduce((sum, p) => sum + p.ms, 0);
  const ms = (t: TransportSummary, phase: string) => t.phases.find((p) => p.phase === phase)?.ms ?? 0;
  const longest = Math.max(0, ...transports.map(total));
  if (longest === 0) return null;
  const used = Object.keys(PHASES).filter((phase) => transports.some((t) => ms(t, phase) > 0));
  const bar = (t: TransportSummary) => {
    const part = (phase: string) =>
      h("span", {
        style: `width:${(100 * ms(t, phase)) / longest}%;background:var(--${phase})`,
        title: `${PHASES[phase]}: ${time(ms(t, phase))}, ${percent((100 * ms(t, phase)) / total(t), 0)}`,
      });
    return [
      h("div", { class: "phasehead" }, h("span", {}, protocol(t.transport)), h("b", {}, time(total(t)))),
      // The table below says the same in figures.
      h("div", { class: "phasebar", "aria-hidden": "true" }, used.map(part)),
    ];
  };
  const head = h(
    "tr",
    {},
    h("th", {}, "part"),
    transports.map((t) => h("th", { class: "n" }, protocol(t.transport))),
  );
  const row = (phase: string) =>
    h(
      "tr",
      {},
      h("th", {}, swatch(phase), PHASES[phase]!),
      transports.map((t) => cell(time(ms(t, phase)))),
    );
  return h(
    "div",
    { class: "where" },
    h("h2", {}, "Where the time to onload goes"),
    h(
      "p",
      { class: "muted" },
      "Mean over all complete loads, along the chain of events that ended in onload.",
    ),
    transports.map(bar),
    h("table", { class: "phases" }, h("thead", {}, head), h("tbody", {}, used.map(row))),
  );
}

/** One row a network and transport. */
function table(overview: Overview, state: State): HTMLElement {
  const { networks, transports, unit } = overview.summary;
  const ends = (e: Estimate | null) => (e ? [e.value, e.low ?? e.value, e.high ?? e.value] : []);
  const all = networks.flatMap((n) => n.comparisons.flatMap((c) => ends(c.mean_speedup_pct)));
  const range: [number, number] = [Math.min(0, ...all), Math.max(0, ...all)];
  const several = transports.length > 1;
  const against = several ? ["Mean speed-up", "", "Median speed-up", `${unit}s faster`] : [];
  const figures = ["First paint", "Conns", "Down", "Up", "Sent again", "Complete"];
  const columns = ["Median PLT", ...against, ...figures].map((c) => h("th", { class: "n" }, c));
  const head = h("tr", {}, h("th", {}, "Network"), h("th", {}, "Transport"), columns);
  const rows = networks.map((n, i) => {
    const link = h("a", { href: toAddress(overview, { ...state, network: i }) }, n.network);
    return n.transports.map((t, j) =>
      h(
        "tr",
        { class: i === state.network ? "chosen" : "" },
        j === 0 && h("th", { rowspan: n.transports.length, scope: "rowgroup" }, link),
        h("th", { scope: "row" }, transportName(overview, j)),
        cell(estimate(t.plt_ms, time)),
        several &&
          comparison(
            n.comparisons.find((c) => c.other === t.transport),
            range,
          ),
        means(t),
      ),
    );
  });
  const grid = h("table", { class: "grid", id: "headline" }, h("thead", {}, head), h("tbody", {}, rows));
  return h("div", { class: "scroll" }, grid);
}

function comparison(c: Comparison | undefined, range: [number, number]): Child {
  if (!c) return [cell(muted("compared with")), h("td"), h("td"), h("td")];
  return [
    cell(estimate(c.mean_speedup_pct, signed)),
    h("td", {}, c.mean_speedup_pct && forest(c.mean_speedup_pct, range)),
    cell(estimate(c.median_speedup_pct, signed)),
    cell(h("b", {}, percent(share(c), 0)), h("span", { class: "muted interval" }, ` of ${count(c.pairs)}`)),
  ];
}

function means(t: TransportSummary): Child {
  const whole = t.complete === t.loads && t.requests_failed === 0;
  const failed = t.requests_failed > 0 && plural(t.requests_failed, "failed request");
  return [
    cell(estimate(t.first_paint_ms, time)),
    cell(mean(t.connections)),
    cell(bytes(t.bytes_down)),
    cell(bytes(t.bytes_up)),
    cell(mean(t.retransmits)),
    h(
      "td",
      { class: whole ? "n" : "n warn" },
      `${count(t.complete)} of ${count(t.loads)}`,
      failed && h("span", { class: "interval" }, failed),
    ),
  ];
}

/** An estimate and its interval on a line with zero marked. */
function forest(e: Estimate, [min, max]: [number, number]): SVGElement {
  const [width, height] = [110, 18];
  const at = (value: number) => 5 + ((width - 10) * (value - min)) / Math.max(1e-9, max - min);
  const [low, high] = [e.low ?? e.value, e.high ?? e.value];
  const color = `var(--${low > 0 ? "good" : high < 0 ? "bad" : "muted"})`;
  const interval = { x1: at(low), x2: at(high), y1: 9, y2: 9, stroke: color };
  return s(
    "svg",
    { viewBox: `0 0 ${width} ${height}`, class: "forest", "aria-hidden": "true" },
    s("line", { x1: at(0), x2: at(0), y1: 1, y2: height - 1, stroke: "var(--rule-strong)" }),
    s("line", { ...interval, "stroke-width": 3, "stroke-opacity": 0.45 }),
    s("circle", { cx: at(e.value), cy: 9, r: 4, fill: color }),
  );
}

function conditions({ summary, seed, plan, environment }: Overview, network: NetworkSummary): HTMLElement {
  const missing = summary.loads_planned - summary.loads;
  const stopped = `${plural(missing, "load")} of ${count(summary.loads_planned)} not done: the run was stopped.`;
  const size = `${plural(summary.pages, "page")}, ${plural(summary.runs, "run")} of each, seed ${seed}: ${plural(summary.loads, "load")}.`;
  return h(
    "div",
    {},
    h("h2", {}, `Conditions on network ${network.network}`),
    sentences(null, network.conditions),
    h("p", {}, size),
    missing > 0 && h("p", { class: "warn" }, stopped),
    folded("The whole plan", h("pre", {}, plan)),
    folded("The machine", h("pre", {}, JSON.stringify(environment, null, 2))),
  );
}

/** What to know before using a figure, if there is anything. */
function caveats({ summary }: Overview): Child {
  const { notes, problems } = summary;
  if (notes.length + problems.length + summary.assumptions.length === 0) return null;
  const place = (p: Problem) =>
    [p.file, p.entry === null ? null : `entry ${p.entry}`, p.field]
      .filter((part) => part !== null)
      .join(": ");
  const problem = (p: Problem): Child => [h("code", {}, place(p)), `: ${p.what}`];
  return h(
    "div",
    {},
    h("h2", {}, "What to know before using a figure"),
    sentences(null, notes),
    problems.length > 0 && [
      h("h3", { class: "warn" }, `${plural(problems.length, "input")} could not be raced`),
      sentences(null, problems.map(problem)),
    ],
    assumptions(summary.assumptions),
  );
}

/** The pages that gained and lost most. */
export function extremes(overview: Overview, state: State): Child {
  const c = spokenOf(overview, state);
  if (!c || c.pairs < 2) return null;
  const row = (p: PagePair) => {
    const page = overview.pages.id.indexOf(p.page);
    const link =
      page >= 0 && h("a", { href: toAddress(overview, { ...state, page }) }, pageName(overview, page));
    const times = `${time(p.first_ms)} → ${time(p.other_ms)}`;
    return h(
      "tr",
      {},
      h("td", {}, link, p.run !== null && ` run ${p.run}`),
      cell(times),
      cell(h("b", {}, signed(p.speedup_pct))),
    );
  };
  const list = (title: string, pairs: PagePair[]) =>
    h(
      "div",
      {},
      h("h3", {}, title),
      pairs.length > 0
        ? h("table", { class: "grid slim" }, h("tbody", {}, pairs.map(row)))
        : h("p", { class: "muted" }, "none"),
    );
  return [list(`Gained most page load time with ${protocol(c.other)}`, c.gains), list("Lost most", c.losses)];
}
