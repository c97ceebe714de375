// Figures as text. Units follow the figure; a minus is a minus.

/** `4.71 s`, `471 ms`, `4.7 ms`. */
export function time(ms: number | null | undefined): string {
  if (ms == null) return "–";
  const size = Math.abs(ms);
  if (size >= 9_999.5) return `${minus((ms / 1000).toFixed(1))} s`;
  if (size >= 999.5) return `${minus((ms / 1000).toFixed(2))} s`;
  return `${minus(ms.toFixed(size >= 99.95 || ms === 0 ? 0 : 1))} ms`;
}

/** Whole milliseconds for tables: `4,710`. */
export function wholeMs(us: number | null | undefined): string {
  return us == null ? "–" : count(us / 1000);
}

/** `1.18 MB`, `310 kB`, `512 B`. */
export function bytes(n: number | null | undefined): string {
  if (n == null) return "–";
  if (n >= 999_500) return `${(n / 1e6).toFixed(n >= 9_995_000 ? 1 : 2)} MB`;
  if (n >= 1000) return `${(n / 1e3).toFixed(n >= 9_950 ? 0 : 1)} kB`;
  return `${Math.round(n)} B`;
}

/** A whole number with separators. */
export function count(n: number | null | undefined): string {
  return n == null ? "–" : minus(Math.round(n).toLocaleString("en-US"));
}

/** A mean of counts: one digit after the point below 100. */
export function mean(n: number): string {
  return n < 100 ? n.toFixed(1) : count(n);
}

/** `31.2 %`; a space that does not break. */
export function percent(p: number | null | undefined, digits = 1): string {
  return p == null ? "–" : `${minus(p.toFixed(digits))}\u00a0%`;
}

/** A percentage with its sign. */
export function signed(p: number | null | undefined, digits = 1): string {
  return p == null ? "–" : (Number(p.toFixed(digits)) > 0 ? "+" : "") + percent(p, digits);
}

/** `n page`, `n pages`. */
export function plural(n: number, noun: string): string {
  return `${count(n)} ${noun}${n === 1 ? "" : "s"}`;
}

/** A transport's name as its specification writes it. */
export function protocol(name: string): string {
  if (name === "http1") return "HTTP/1.1";
  const spdy = /^spdy(\d.*)$/.exec(name);
  return spdy ? `SPDY/${spdy[1]}` : name;
}

/** Cuts the middle out of a text longer than `max` characters: both ends of a path tell most. */
export function clip(text: string, max: number): string {
  if (text.length <= max) return text;
  const tail = Math.ceil((max - 1) * 0.6);
  return `${text.slice(0, Math.max(0, max - 1 - tail))}…${text.slice(text.length - tail)}`;
}

/** Cuts the end off: of a host's name the beginning tells most. */
export function clipEnd(text: string, max: number): string {
  return text.length <= max ? text : `${text.slice(0, Math.max(1, max - 1))}…`;
}

function minus(text: string): string {
  return text.replace(/^-(?=[0.]*$)/, "").replace("-", "−");
}
