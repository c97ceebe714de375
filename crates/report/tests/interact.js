// Uses a report as a reader would, and leaves what it saw in the element "facts". The test appends this to the page.
(async () => {
  const facts = {};
  const all = (selector) => [...document.querySelectorAll(selector)];
  const one = (selector) => document.querySelector(selector);
  const until = async (what, holds) => {
    for (let tries = 0; !holds(); tries++) {
      if (tries === 500) throw new Error(`waited in vain for ${what}`);
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  };
  const ready = (name) => until(name, () => document.documentElement.dataset.ready === name);
  const click = (element, init = {}) => element.dispatchEvent(new MouseEvent("click", { bubbles: true, cancelable: true, ...init }));
  const key = (name) => document.body.dispatchEvent(new KeyboardEvent("keydown", { key: name, bubbles: true }));
  const rows = () => all("#pages tbody tr").map((row) => row.dataset.page);
  const point = (type, x, y) => new PointerEvent(type, { clientX: x, clientY: y, bubbles: true, button: 0, pointerId: 1 });

  await ready("overview");
  facts.points = all("#scatter .points a").length;
  facts.identity = all("#scatter .identity").length;
  facts.curves = all("#cdf .lines span").length;
  facts.rows = rows();

  click(all("#pages thead button").find((b) => b.textContent.includes("HTTP/1.1")));
  facts.sorted = rows();
  one("#filter").value = "page 2";
  one("#filter").dispatchEvent(new Event("input"));
  facts.filtered = rows();
  one("#filter").value = "";
  one("#filter").dispatchEvent(new Event("input"));

  click(all("#scatter .points a")[1]);
  await ready("page");
  await until("the waterfall", () => one('[data-view="waterfall"]'));
  facts.opened = location.hash;
  facts.title = one("main.page h1").textContent;
  facts.bars = all('[data-view="waterfall"] .request').length;
  facts.connections = all('[data-view="connections"] .connection').length;
  facts.marks = all('[data-view="connections"] .mark').length;

  const drawing = one('[data-view="waterfall"] .drawing');
  const box = drawing.getBoundingClientRect();
  drawing.dispatchEvent(point("pointermove", box.left + 20, box.top + 30));
  facts.tip = one("#tip").textContent;
  key("ArrowDown");
  facts.picked = one(".dock").textContent;
  facts.arrows = all(".arrow").length;
  key("ArrowDown");
  facts.arrowsToInitiator = all(".arrow").length;
  key("Escape");
  facts.closed = one(".dock").hidden;

  const next = rows()[rows().indexOf("page-1") + 1];
  key("ArrowRight");
  await until("the next page", () => location.hash.includes(`page=${next}&`));
  facts.next = true;
  key("Escape");
  await ready("overview");

  click(all("#pages tbody tr")[0]);
  await ready("page");
  facts.row = location.hash;
  return facts;
})()
  .catch((error) => ({ error: String(error) }))
  .then((facts) => {
    const out = document.createElement("output");
    out.id = "facts";
    out.textContent = encodeURIComponent(JSON.stringify(facts));
    document.body.append(out);
  });
