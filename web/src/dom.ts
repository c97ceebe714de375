// Elements, without a framework. Text only ever becomes text nodes and attributes: nothing from a recording is HTML.

export type Child = Node | string | null | false | undefined | Child[];
type Value = string | number | boolean | null | undefined | ((event: never) => void);
export type Attributes = Record<string, Value>;

/** An HTML element. A function under `onclick` and the like is a listener. */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  return fill(document.createElement(tag), attributes, children);
}

/** An SVG element. */
export function s<K extends keyof SVGElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: Child[]
): SVGElementTagNameMap[K] {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

function fill<E extends Element>(element: E, attributes: Attributes, children: Child[]): E {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name.slice(2), value as EventListener);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value != null) element.setAttribute(name, String(value));
  }
  append(element, children);
  return element;
}

function append(element: Element, children: Child[]): void {
  for (const child of children) {
    if (Array.isArray(child)) append(element, child);
    else if (child instanceof Node || typeof child === "string") element.append(child);
  }
}

/** Puts `children` in the place of what `element` holds. */
export function replace(element: Element, ...children: Child[]): void {
  element.replaceChildren();
  append(element, children);
}

/** The mean width of a character of the page's font at `size` pixels. */
export function characterWidth(size: number): number {
  const ruler = document.createElement("canvas").getContext("2d");
  const sample = "abcdefghijklmnopqrstuvwxyz0123456789/.-_?=";
  if (!ruler) return size * 0.6;
  ruler.font = `${size}px ${getComputedStyle(document.body).fontFamily}`;
  return ruler.measureText(sample).width / sample.length;
}

/** A select box with `options` as value and text. */
export function select(
  label: string,
  options: [string, string][],
  chosen: string,
  change: (value: string) => void,
) {
  const box = h(
    "select",
    { id: `choose-${label.toLowerCase()}`, onchange: () => change(box.value) },
    options.map(([value, text]) => h("option", { value, selected: value === chosen }, text)),
  );
  return h("label", { class: "field" }, h("span", {}, label), box);
}
