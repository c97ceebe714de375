// The bar at the top: what is looked at, and on a page the way on and back.

import type { Overview } from "./data.ts";
import { h, select, type Child } from "./dom.ts";
import { plural, protocol } from "./format.ts";
import { METRICS, toAddress, type State } from "./state.ts";

/** `order` is that of the pages to walk; `go` changes what is looked at. */
export function toolbar(
  overview: Overview,
  state: State,
  order: number[],
  go: (change: Partial<State>) => void,
): HTMLElement {
  const parts =
    state.page === null
      ? [title(overview), choices(overview, state, go), figureChoices(state, go)]
      : [
          h("a", { class: "back", href: toAddress(overview, { ...state, page: null }) }, "← All pages"),
          choices(overview, state, go),
          walk(state.page, order, go),
        ];
  return h("div", { class: "inner" }, parts);
}

function title({ summary }: Overview): Child {
  const size = [
    plural(summary.pages, "page"),
    plural(summary.networks.length, "network"),
    plural(summary.runs, "run"),
  ];
  return h("span", { class: "brand" }, "Velodrome ", h("span", { class: "muted" }, size.join(" · ")));
}

function choices({ summary }: Overview, state: State, go: (change: Partial<State>) => void): Child[] {
  const networks = summary.networks.map((n, i): [string, string] => [String(i), n.network]);
  const transports = summary.transports.map((t, i): [string, string] => [String(i), protocol(t)]);
  // Whoever is chosen on one side and stands on the other trades places.
  const side = (label: string, own: "x" | "y", other: "x" | "y") =>
    select(label, transports, String(state[own]), (value) => {
      const chosen = Number(value);
      go({ [own]: chosen, ...(state[other] === chosen && { [other]: state[own] }) });
    });
  return [
    networks.length > 1 &&
      select("Network", networks, String(state.network), (v) => go({ network: Number(v) })),
    transports.length > 1 && [side("Compare", "x", "y"), side("with", "y", "x")],
  ];
}

function figureChoices(state: State, go: (change: Partial<State>) => void): Child[] {
  const metrics = METRICS.map((m): [string, string] => [m.key, m.label]);
  const scales: [string, string][] = [
    ["linear", "linear"],
    ["log", "logarithmic"],
  ];
  return [
    select("Figure", metrics, state.metric.key, (v) => go({ metric: METRICS.find((m) => m.key === v)! })),
    select("Scale", scales, state.log ? "log" : "linear", (v) => go({ log: v === "log" })),
  ];
}

function walk(page: number, order: number[], go: (change: Partial<State>) => void): Child {
  const at = order.indexOf(page);
  const button = (text: string, key: string, to: number | undefined) =>
    h("button", { title: key, disabled: to === undefined, onclick: () => go({ page: to! }) }, text);
  return h(
    "span",
    { class: "walk" },
    button("‹ Previous", "Left arrow key", order[at - 1]),
    h("span", { class: "muted" }, `${at + 1} of ${order.length}`),
    button("Next ›", "Right arrow key", order[at + 1]),
  );
}
