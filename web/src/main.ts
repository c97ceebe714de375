// A velodrome report: the overview of a run and, behind every point and row, one page.

import { distribution, scatter } from "./charts.ts";
import { unpackOverview, unpackPage, type Overview } from "./data.ts";
import { h, replace, select } from "./dom.ts";
import { plural, protocol } from "./format.ts";
import { extremes, headline } from "./overview.ts";
import { pageView, type PageView } from "./page.ts";
import { METRICS, fromAddress, toAddress, type State } from "./state.ts";
import { pageTable } from "./table.ts";
import { hideTip } from "./tooltip.ts";

const app = document.getElementById("app")!;

/** Says on the page itself that something broke: a report is read where no console is open. */
function fail(what: unknown): void {
  const text = what instanceof Error ? `${what.name}: ${what.message}` : String(what);
  document.documentElement.dataset["error"] = text;
  app.prepend(h("p", { class: "failure", role: "alert" }, `This report could not be drawn: ${text}. It needs a browser of 2023 or later.`));
}

addEventListener("error", (event) => fail(event.error ?? event.message));
addEventListener("unhandledrejection", (event) => fail(event.reason));
addEventListener("securitypolicyviolation", (event) => fail(`${event.violatedDirective} forbids ${event.blockedURI}`));

unpackOverview().then(start, fail);

function start(overview: Overview): void {
  let state = fromAddress(overview);
  let view: PageView | null = null;
  let scrolled = 0;
  const bar = h("header", { class: "toolbar" });
  const top = h("div");
  const charts = h("section", { class: "two", id: "charts" });
  const most = h("section", { class: "two" });
  const pages = pageTable(overview, (shown) => drawCharts(new Set(shown)));
  const home = h("main", { class: "overview" }, top, charts, most, pages.element);
  const place = h("div");
  app.replaceChildren(bar, home, place, h("footer", {}, "Times in waterfalls are rounded to 0.1 ms. This page holds all its data and loads nothing."));

  const go = (change: Partial<State>) => {
    location.hash = toAddress(overview, { ...state, ...change });
  };

  function drawCharts(among: Set<number>): void {
    const metric = state.metric.label;
    const unit = overview.summary.unit;
    const one = unit === "page" ? "One point a page, the median of its runs." : "One point a run, as there is one page.";
    const pair = overview.summary.transports.length > 1;
    const points = h(
      "figure",
      { id: "scatter" },
      h("h2", {}, `${metric}, ${unit} by ${unit}`),
      h("p", { class: "muted" }, `${one} On the red line both take the same. Click a point for its waterfall.`),
      pair && scatter(overview, state, among, (page) => go({ page })),
    );
    const shares = h(
      "figure",
      { id: "cdf" },
      h("h2", {}, `${metric}, share of ${unit}s`),
      h("p", { class: "muted" }, `Cumulative distribution of the ${unit === "page" ? "pages' medians" : "runs"}. Further left is better.`),
      distribution(overview, state),
    );
    replace(charts, pair && points, shares);
  }

  function drawOverview(): void {
    replace(top, headline(overview, state));
    pages.update(state);
    drawCharts(new Set(pages.order()));
    replace(most, extremes(overview, state));
  }

  async function drawPage(page: number): Promise<void> {
    const detail = await unpackPage(page);
    if (state.page !== page) return;
    view = pageView(overview, state, detail);
    place.replaceChildren(view.element);
    view.draw();
    scrollTo(0, 0);
  }

  async function draw(): Promise<void> {
    hideTip();
    if (state.page === null) drawOverview();
    drawToolbar();
    home.hidden = state.page !== null;
    place.hidden = state.page === null;
    if (state.page !== null) await drawPage(state.page);
    else place.replaceChildren();
    const title = state.page === null ? overview.summary.transports.map(protocol).join(" / ") : overview.pages.title[state.page] || overview.pages.id[state.page]!;
    document.title = `${title} – Velodrome`;
    document.documentElement.dataset["ready"] = state.page === null ? "overview" : "page";
  }

  function step(by: number): void {
    const order = pages.order();
    const at = order.indexOf(state.page!);
    const next = order[at + by];
    if (next !== undefined) go({ page: next });
  }

  function drawToolbar(): void {
    const { networks, transports } = overview.summary;
    const named = transports.map((t, i): [string, string] => [String(i), protocol(t)]);
    const network = networks.length > 1 && select("Network", networks.map((n, i) => [String(i), n.network]), String(state.network), (v) => go({ network: Number(v) }));
    // Two transports trade places; with more, each side has its own choice.
    const swap = (side: "x" | "y") => (value: string) => {
      const chosen = Number(value);
      const other = side === "x" ? "y" : "x";
      go({ [side]: chosen, ...(state[other] === chosen && { [other]: state[side] }) });
    };
    const pair = transports.length > 1 && [select("Compare", named, String(state.x), swap("x")), select("with", named, String(state.y), swap("y"))];
    const parts =
      state.page === null
        ? [
            h("span", { class: "brand" }, "Velodrome ", h("span", { class: "muted" }, [plural(overview.summary.pages, "page"), plural(networks.length, "network"), plural(overview.summary.runs, "run")].join(" · "))),
            network,
            pair,
            select("Figure", METRICS.map((m) => [m.key, m.label]), state.metric.key, (v) => go({ metric: METRICS.find((m) => m.key === v)! })),
            select("Scale", [["linear", "linear"], ["log", "logarithmic"]], state.log ? "log" : "linear", (v) => go({ log: v === "log" })),
          ]
        : [
            h("a", { class: "back", href: toAddress(overview, { ...state, page: null }) }, "← All pages"),
            network,
            pair,
            h("span", { class: "walk" }, h("button", { onclick: () => step(-1), title: "Left arrow key" }, "‹ Previous"), h("span", { class: "muted" }, `${pages.order().indexOf(state.page) + 1} of ${pages.order().length}`), h("button", { onclick: () => step(1), title: "Right arrow key" }, "Next ›")),
          ];
    replace(bar, h("div", { class: "inner" }, parts));
  }

  addEventListener("hashchange", () => {
    const next = fromAddress(overview);
    if (state.page === null && next.page !== null) scrolled = scrollY;
    const back = state.page !== null && next.page === null;
    state = next;
    void draw().then(() => back && scrollTo(0, scrolled));
  });
  addEventListener("keydown", (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey || (event.target as Element).matches("input, select, textarea")) return;
    if (state.page === null) return;
    if (view?.key(event.key)) event.preventDefault();
    else if (event.key === "ArrowLeft") step(-1);
    else if (event.key === "ArrowRight") step(1);
    else if (event.key === "Escape") go({ page: null });
  });
  // The order of the table is the order of the pages, so it is there even when a link leads to a page first.
  pages.update(state);
  void draw();
}
