// A velodrome report: the overview of a run and, behind every point and row, one page.

import { pageName, unpackOverview, unpackPage, type Overview } from "./data.ts";
import { distribution } from "./distribution.ts";
import { h, replace, type Child } from "./dom.ts";
import { protocol } from "./format.ts";
import { extremes, headline } from "./overview.ts";
import { PageView } from "./page.ts";
import { scatter } from "./scatter.ts";
import { fromAddress, toAddress, type State } from "./state.ts";
import { PageTable } from "./table.ts";
import { toolbar } from "./toolbar.ts";
import { hideTip } from "./tooltip.ts";

const FOOT = "Times in waterfalls are rounded to 0.1 ms. This page holds all its data and loads nothing.";

const root = document.documentElement;
const app = document.getElementById("app")!;

/** Says on the page itself that something broke: a report is read where no console is open. */
function fail(what: unknown): void {
  const text = what instanceof Error ? `${what.name}: ${what.message}` : String(what);
  const advice = `This report could not be drawn: ${text}. It needs a browser of 2023 or later.`;
  root.dataset["error"] = text;
  app.prepend(h("p", { class: "failure", role: "alert" }, advice));
}

addEventListener("error", (event) => fail(event.error ?? event.message));
addEventListener("unhandledrejection", (event) => fail(event.reason));
addEventListener("securitypolicyviolation", (e) => fail(`${e.violatedDirective} forbids ${e.blockedURI}`));

/** The two screens. Everything looked at is in the address, so that a change is a change of address. */
class App {
  private state: State;
  private view: PageView | null = null;
  /** How far the overview was scrolled when a page was opened. */
  private scrolled = 0;
  private readonly bar = h("header", { class: "toolbar" });
  private readonly top = h("div");
  private readonly charts = h("section", { class: "two", id: "charts" });
  private readonly most = h("section", { class: "two" });
  private readonly table: PageTable;
  private readonly home: HTMLElement;
  private readonly place = h("div");

  constructor(private readonly overview: Overview) {
    this.state = fromAddress(overview);
    this.table = new PageTable(overview, this.state, () => this.drawCharts());
    this.home = h("main", { class: "overview" }, this.top, this.charts, this.most, this.table.element);
    replace(app, this.bar, this.home, this.place, h("footer", {}, FOOT));
    addEventListener("hashchange", () => void this.arrive());
    addEventListener("keydown", (event) => this.key(event));
    void this.draw();
  }

  private go(change: Partial<State>): void {
    location.hash = toAddress(this.overview, { ...this.state, ...change });
  }

  private async arrive(): Promise<void> {
    const next = fromAddress(this.overview);
    const [was, is] = [this.state.page, next.page];
    if (was === null && is !== null) this.scrolled = scrollY;
    this.state = next;
    await this.draw();
    if (was !== null && is === null) scrollTo(0, this.scrolled);
  }

  private async draw(): Promise<void> {
    const { overview, state } = this;
    hideTip();
    if (state.page === null) this.drawOverview();
    const focused = document.activeElement?.id;
    replace(
      this.bar,
      toolbar(overview, state, this.table.order, (change) => this.go(change)),
    );
    if (focused) document.getElementById(focused)?.focus();
    this.home.hidden = state.page !== null;
    this.place.hidden = state.page === null;
    if (state.page === null) this.place.replaceChildren();
    else await this.drawPage(state.page);
    const run = () => overview.summary.transports.map(protocol).join(" / ");
    document.title = `${state.page === null ? run() : pageName(overview, state.page)} – Velodrome`;
    root.dataset["ready"] = state.page === null ? "overview" : "page";
  }

  private drawOverview(): void {
    replace(this.top, headline(this.overview, this.state));
    this.table.update(this.state);
    this.drawCharts();
    replace(this.most, extremes(this.overview, this.state));
  }

  private drawCharts(): void {
    const { overview, state } = this;
    const { transports, unit } = overview.summary;
    const metric = state.metric.label;
    const [one, all] =
      unit === "page"
        ? ["One point a page, the median of its runs.", "pages' medians"]
        : ["One point a run, as there is one page.", "runs"];
    const chart = (id: string, title: string, note: string, ...content: Child[]) =>
      h("figure", { id }, h("h2", {}, title), h("p", { class: "muted" }, note), content);
    const open = (page: number) => this.go({ page });
    const points = () =>
      chart(
        "scatter",
        `${metric}, ${unit} by ${unit}`,
        `${one} On the red line both take the same. Click a point for its waterfall.`,
        scatter(overview, state, new Set(this.table.order), open),
      );
    const shares = chart(
      "cdf",
      `${metric}, share of ${unit}s`,
      `Cumulative distribution of the ${all}. Further left is better.`,
      distribution(overview, state),
    );
    replace(this.charts, transports.length > 1 && points(), shares);
  }

  private async drawPage(page: number): Promise<void> {
    const detail = await unpackPage(page);
    if (this.state.page !== page) return;
    this.view = new PageView(this.overview, this.state, detail);
    this.place.replaceChildren(this.view.element);
    this.view.draw();
    scrollTo(0, 0);
  }

  private key(event: KeyboardEvent): void {
    const { page } = this.state;
    const typing = (event.target as Element).matches("input, select, textarea");
    if (page === null || typing || event.altKey || event.ctrlKey || event.metaKey) return;
    const step = (by: number) => {
      const next = this.table.order[this.table.order.indexOf(page) + by];
      if (next !== undefined) this.go({ page: next });
    };
    if (this.view?.key(event.key)) event.preventDefault();
    else if (event.key === "ArrowLeft") step(-1);
    else if (event.key === "ArrowRight") step(1);
    else if (event.key === "Escape") this.go({ page: null });
  }
}

unpackOverview()
  .then((overview) => new App(overview))
  .catch(fail);
