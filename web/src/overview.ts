// The headline: who is faster, by how much, how sure, why, and under which conditions.

import type { Assumption, Comparison, Estimate, NetworkSummary, Overview, PagePair, TransportSummary } from "./data.ts";
import { h, s, type Child } from "./dom.ts";
import { bytes, count, mean, percent, plural, protocol, signed, time } from "./format.ts";
import { PHASES } from "./phases.ts";
import { toAddress, type State } from "./state.ts";

/** Assumptions are ordered by how often they were made; the rest is a click away. */
const ASSUMPTIONS_SHOWN = 8;

/** The comparison that the headline speaks of: the one chosen if there is one, else the first. */
function spokenOf(overview: Overview, state: State): Comparison | undefined {
  const { comparisons } = overview.summary.networks[state.network]!;
  const name = (index: number) => overview.summary.transports[index]!;
  return comparisons.find((c) => c.other === name(state.y) || c.other === name(state.x)) ?? comparisons[0];
}

export function headline(overview: Overview, state: State): Child[] {
  const network = overview.summary.networks[state.network]!;
  const comparison = spokenOf(overview, state);
  return [
    h("section", { class: "hero" }, comparison ? verdict(overview, network, comparison) : alone(network), phaseBars(network)),
    h("section", {}, h("h2", {}, "Every network and transport"), table(overview, state)),
    conditions(overview, network),
  ];
}

function verdict(overview: Overview, network: NetworkSummary, c: Comparison): HTMLElement {
  const unit = overview.summary.unit;
  const [first, other] = [protocol(c.first), protocol(c.other)];
  const m = c.mean_speedup_pct;
  let claim: Child[] = [`${first} and ${other} have no page in common that loaded over both`];
  if (m && m.low !== null && m.high !== null && m.low <= 0 && m.high >= 0) {
    claim = [`No clear difference between ${other} and ${first}`];
  } else if (m) {
    const better = m.value >= 0;
    const size = h("strong", { class: better ? "good" : "bad" }, `${percent(Math.abs(m.value))} ${better ? "less" : "more"} time`);
    claim = [`${other} takes `, size, ` than ${first}`];
  }
  const facts: [string, Child][] = [
    ["mean speed-up", estimate(m, signed)],
    ["median speed-up", estimate(c.median_speedup_pct, signed)],
    [`${unit}s faster`, [h("b", {}, `${count(c.faster)} of ${count(c.pairs)}`), ` (${percent((100 * c.faster) / Math.max(1, c.pairs), 0)}), ${count(c.slower)} slower`]],
  ];
  if (c.sign_test_p !== null) facts.push(["sign test", `p ${c.sign_test_p < 0.001 ? "< 0.001" : `= ${c.sign_test_p.toFixed(3)}`}`]);
  const published = c.published;
  if (published) facts.push(["published", [h("b", {}, signed(published.mean_speedup_pct, 0)), ` ${published.figure} (${published.source})`]]);
  return h(
    "div",
    { class: "verdict" },
    h("h1", {}, claim),
    h("p", { class: "muted" }, `Paired by ${unit} on network ${network.network}; positive means ${other} is faster. Brackets hold 95 % intervals.`),
    h("dl", { class: "facts" }, facts.map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)])),
    c.why.length > 0 && [h("h3", {}, "Why"), h("ul", {}, c.why.map((w) => h("li", {}, w)))],
    published && published.differs.length > 0 && [
      h("h3", {}, "What differs from the published conditions"),
      h("ul", {}, published.differs.map((d) => h("li", {}, d))),
    ],
  );
}

/** The headline of a run with one transport. */
function alone(network: NetworkSummary): HTMLElement {
  const [t] = network.transports;
  const plt = t?.plt_ms ? time(t.plt_ms.value) : "–";
  return h("div", { class: "verdict" }, h("h1", {}, `${t ? protocol(t.transport) : ""}: median page load time ${plt}`));
}

/** Where the mean page load time goes, one bar a transport, on one scale. */
function phaseBars(network: NetworkSummary): Child {
  const total = (t: TransportSummary) => t.phases.reduce((sum, p) => sum + p.ms, 0);
  const longest = Math.max(...network.transports.map(total));
  if (!(longest > 0)) return null;
  const bar = (t: TransportSummary) =>
    h(
      "div",
      { class: "phasebar", role: "img", "aria-label": t.phases.map((p) => `${p.phase} ${time(p.ms)}`).join(", ") },
      t.phases
        .filter((p) => p.ms > 0)
        .map((p) =>
          h("span", {
            style: `width:${(100 * p.ms) / longest}%;background:var(--${p.phase})`,
            title: `${PHASES[p.phase] ?? p.phase}: ${time(p.ms)}, ${percent((100 * p.ms) / total(t), 0)}`,
          }),
        ),
    );
  const phases = network.transports[0]!.phases.map((p) => p.phase);
  const used = phases.filter((phase) => network.transports.some((t) => t.phases.some((p) => p.phase === phase && p.ms > 0)));
  const ms = (t: TransportSummary, phase: string) => t.phases.find((p) => p.phase === phase)?.ms ?? 0;
  return h(
    "div",
    { class: "where" },
    h("h2", {}, "Where the time to onload goes"),
    h("p", { class: "muted" }, "Mean over all complete loads, along the chain of events that ended in onload."),
    network.transports.map((t) => [
      h("div", { class: "phasehead" }, h("span", {}, protocol(t.transport)), h("b", {}, time(total(t)))),
      bar(t),
    ]),
    h(
      "table",
      { class: "phases" },
      h("thead", {}, h("tr", {}, h("th", {}, "part"), network.transports.map((t) => h("th", { class: "n" }, protocol(t.transport))))),
      h(
        "tbody",
        {},
        used.map((phase) =>
          h("tr", {}, h("th", {}, swatch(phase), PHASES[phase] ?? phase), network.transports.map((t) => h("td", { class: "n" }, time(ms(t, phase))))),
        ),
      ),
    ),
  );
}

export function swatch(phase: string): HTMLElement {
  return h("i", { class: "swatch", style: `background:var(--${phase})` });
}

/** `**4.71 s** [4.52, 4.93]`. */
function estimate(e: Estimate | null, show: (value: number) => string): Child[] {
  if (!e) return ["–"];
  const interval = e.low !== null && e.high !== null && h("span", { class: "muted interval" }, ` [${show(e.low)}, ${show(e.high)}]`);
  return [h("b", {}, show(e.value)), interval];
}

function table(overview: Overview, state: State): HTMLElement {
  const { networks, unit } = overview.summary;
  const bounds = networks.flatMap((n) =>
    n.comparisons.flatMap((c) => {
      const m = c.mean_speedup_pct;
      return m ? [m.value, m.low ?? m.value, m.high ?? m.value] : [];
    }),
  );
  const range: [number, number] = [Math.min(0, ...bounds), Math.max(0, ...bounds)];
  const several = overview.summary.transports.length > 1;
  const against = several ? ["Mean speed-up", "", "Median speed-up", `${unit}s faster`] : [];
  const columns = ["Transport", "Median PLT", ...against, "First paint", "Connections", "Down", "Up", "Sent again", "Complete"];
  const rows = networks.map((n, i) =>
    n.transports.map((t, j) => {
      const c = n.comparisons.find((c) => c.other === t.transport);
      const here = h("a", { href: toAddress(overview, { ...state, network: i }) }, n.network);
      return h(
        "tr",
        { class: i === state.network ? "chosen" : "" },
        j === 0 && h("th", { rowspan: n.transports.length, scope: "rowgroup" }, here),
        h("th", { scope: "row" }, h("i", { class: "dot", style: `background:var(--t${j})` }), protocol(t.transport)),
        h("td", { class: "n" }, estimate(t.plt_ms, time)),
        several && [
          h("td", { class: "n" }, c ? estimate(c.mean_speedup_pct, signed) : h("span", { class: "muted" }, "compared with")),
          h("td", {}, c?.mean_speedup_pct ? forest(c.mean_speedup_pct, range) : null),
          h("td", { class: "n" }, c ? estimate(c.median_speedup_pct, signed) : null),
          h("td", { class: "n" }, c ? [h("b", {}, percent((100 * c.faster) / Math.max(1, c.pairs), 0)), h("span", { class: "muted interval" }, ` of ${count(c.pairs)}`)] : null),
        ],
        h("td", { class: "n" }, estimate(t.first_paint_ms, time)),
        h("td", { class: "n" }, mean(t.connections)),
        h("td", { class: "n" }, bytes(t.bytes_down)),
        h("td", { class: "n" }, bytes(t.bytes_up)),
        h("td", { class: "n" }, mean(t.retransmits)),
        h("td", { class: t.complete < t.loads || t.requests_failed > 0 ? "n warn" : "n" }, `${count(t.complete)} of ${count(t.loads)}`, t.requests_failed > 0 && h("span", { class: "interval" }, plural(t.requests_failed, "failed request"))),
      );
    }),
  );
  const head = h("tr", {}, h("th", {}, "Network"), columns.map((c, i) => h("th", { class: i > 0 ? "n" : "" }, c)));
  return h("div", { class: "scroll" }, h("table", { class: "grid", id: "headline" }, h("thead", {}, head), h("tbody", {}, rows)));
}

/** An estimate and its interval on a line with zero marked. */
function forest(e: Estimate, [min, max]: [number, number]): SVGElement {
  const [width, height] = [110, 18];
  const at = (value: number) => 5 + ((width - 10) * (value - min)) / Math.max(1e-9, max - min);
  const color = (e.low ?? e.value) > 0 ? "var(--good)" : (e.high ?? e.value) < 0 ? "var(--bad)" : "var(--muted)";
  return s(
    "svg",
    { width, height, class: "forest", "aria-hidden": "true" },
    s("line", { x1: at(0), x2: at(0), y1: 1, y2: height - 1, stroke: "var(--rule-strong)" }),
    e.low !== null && e.high !== null && s("line", { x1: at(e.low), x2: at(e.high), y1: 9, y2: 9, stroke: color, "stroke-width": 3, "stroke-opacity": 0.45 }),
    s("circle", { cx: at(e.value), cy: 9, r: 4, fill: color }),
  );
}

function conditions(overview: Overview, network: NetworkSummary): HTMLElement {
  const { summary, plan, environment } = overview;
  const missing = summary.loads_planned - summary.loads;
  return h(
    "section",
    { class: "two" },
    h(
      "div",
      {},
      h("h2", {}, `Conditions on network ${network.network}`),
      h("ul", { class: "conditions" }, network.conditions.map((c) => h("li", {}, c))),
      h("p", {}, `${plural(summary.pages, "page")}, ${plural(summary.runs, "run")} of each, seed ${overview.seed}: ${plural(summary.loads, "load")}.`),
      missing > 0 && h("p", { class: "warn" }, `${plural(missing, "load")} of ${count(summary.loads_planned)} not done: the run was stopped.`),
      folded("The whole plan", h("pre", {}, plan)),
      folded("The machine", h("pre", {}, JSON.stringify(environment, null, 2))),
    ),
    h(
      "div",
      {},
      h("h2", {}, "What to know before using a figure"),
      h("ul", {}, summary.notes.map((n) => h("li", {}, n))),
      assumptions(summary.assumptions),
      summary.problems.length > 0 && [
        h("h3", { class: "warn" }, `${plural(summary.problems.length, "input")} could not be raced`),
        h("ul", { id: "problems" }, summary.problems.map((p) => {
          const place = [p.file, p.entry === null ? null : `entry ${p.entry}`, p.field].filter((x) => x !== null);
          return h("li", {}, h("code", {}, place.join(": ")), `: ${p.what}`);
        })),
      ],
    ),
  );
}

export function assumptions(list: Assumption[]): Child {
  if (list.length === 0) return null;
  const item = (a: Assumption) => h("li", {}, a.detail, h("span", { class: "muted" }, ` (${count(a.count)}×)`));
  const [first, rest] = [list.slice(0, ASSUMPTIONS_SHOWN), list.slice(ASSUMPTIONS_SHOWN)];
  return [
    h("h3", {}, "Assumed where a recording is silent"),
    h("ul", {}, first.map(item)),
    rest.length > 0 && folded(`${rest.length} more`, h("ul", {}, rest.map(item))),
  ];
}

function folded(title: string, ...content: Child[]): HTMLElement {
  return h("details", {}, h("summary", {}, title), content);
}

/** The pages that gained and lost most. */
export function extremes(overview: Overview, state: State): Child {
  const c = spokenOf(overview, state);
  if (!c || c.pairs < 2) return null;
  const list = (title: string, pairs: PagePair[]) =>
    h(
      "div",
      {},
      h("h3", {}, title),
      pairs.length === 0 && h("p", { class: "muted" }, "none"),
      h(
        "table",
        { class: "grid slim" },
        h("tbody", {}, pairs.map((p) => {
          const page = overview.pages.id.indexOf(p.page);
          const link = h("a", { href: toAddress(overview, { ...state, page }) }, overview.pages.title[page] || p.page);
          return h("tr", {}, h("td", {}, link, p.run !== null && ` run ${p.run}`), h("td", { class: "n" }, `${time(p.first_ms)} → ${time(p.other_ms)}`), h("td", { class: "n" }, h("b", {}, signed(p.speedup_pct))));
        })),
      ),
    );
  return [list(`Gained most page load time with ${protocol(c.other)}`, c.gains), list("Lost most", c.losses)];
}
