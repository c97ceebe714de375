// One box that follows the pointer.

import { h, replace, type Child } from "./dom.ts";

const box = h("div", { id: "tip", role: "status", hidden: true });

/** Shows `content` beside a point of the window, on the side where there is room. */
export function showTip(x: number, y: number, ...content: Child[]): void {
  replace(box, ...content);
  box.hidden = false;
  if (!box.isConnected) document.body.append(box);
  const { width, height } = box.getBoundingClientRect();
  const gap = 16;
  const left = x + gap + width > innerWidth - 8 ? Math.max(8, x - gap - width) : x + gap;
  const top = Math.max(8, Math.min(y + gap, innerHeight - height - 8));
  box.style.left = `${left}px`;
  box.style.top = `${top}px`;
}

export function hideTip(): void {
  box.hidden = true;
}
