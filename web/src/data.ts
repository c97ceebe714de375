// The report's data: what the `report` crate packs, and how it is unpacked.

import { clip } from "./format.ts";

/** A value and its 95 % interval. */
export interface Estimate {
  value: number;
  low: number | null;
  high: number | null;
}

export interface Assumption {
  kind: string;
  detail: string;
  count: number;
}

export interface Problem {
  file: string;
  entry: number | null;
  field: string | null;
  what: string;
}

export interface TransportSummary {
  transport: string;
  loads: number;
  complete: number;
  requests_failed: number;
  plt_ms: Estimate | null;
  first_paint_ms: Estimate | null;
  connections: number;
  bytes_down: number;
  bytes_up: number;
  retransmits: number;
  timeouts: number;
  overflows: number;
  phases: { phase: string; ms: number }[];
}

export interface PagePair {
  page: string;
  run: number | null;
  first_ms: number;
  other_ms: number;
  speedup_pct: number;
}

export interface Comparison {
  first: string;
  other: string;
  pairs: number;
  faster: number;
  slower: number;
  mean_speedup_pct: Estimate | null;
  median_speedup_pct: Estimate | null;
  sign_test_p: number | null;
  gains: PagePair[];
  losses: PagePair[];
  why: string[];
  published: { source: string; figure: string; mean_speedup_pct: number; differs: string[] } | null;
}

export interface NetworkSummary {
  network: string;
  conditions: string[];
  transports: TransportSummary[];
  comparisons: Comparison[];
  /** What was done ahead of need, if anything was. */
  accounts?: string[];
}

export interface Summary {
  runs: number;
  transports: string[];
  pages: number;
  loads: number;
  loads_planned: number;
  unit: "page" | "run";
  assumptions: Assumption[];
  problems: Problem[];
  networks: NetworkSummary[];
  notes: string[];
}

/** One transport on one network; every list has one element a page. */
export interface Cell {
  loads: number[];
  complete: number[];
  medians: Record<string, (number | null)[]>;
  /** The complete loads one by one, where a run is what is paired and not a page. */
  by_run: { page: number[]; run: number[]; figures: Record<string, (number | null)[]> } | null;
}

export interface Overview {
  seed: string;
  summary: Summary;
  plan: string;
  environment: unknown;
  pages: {
    id: string[];
    title: string[];
    url: string[];
    source: string[];
    hosts: number[];
    requests: number[];
    bytes: number[];
    on_load_us: (number | null)[];
  };
  cells: Cell[][];
}

/** The longest name shown; some recorders take the address for the title. */
const NAME_MAX = 90;

/** What a page is called: its title, else its id. */
export function pageName(overview: Overview, page: number): string {
  return clip(overview.pages.title[page] || overview.pages.id[page]!, NAME_MAX);
}

export interface Load {
  run: number;
  seed: string;
  outcome: "complete" | "incomplete";
  reason: string | null;
  plt_us: number | null;
  first_paint_us: number | null;
  parsed_us: number | null;
  first_byte_us: number | null;
  finished_us: number | null;
  requests: number;
  failed: number;
  connections: number;
  lookups: number;
  bytes_down: number;
  bytes_up: number;
  retransmits: number;
  timeouts: number;
  lost_down: number;
  lost_up: number;
  overflow_down: number;
  overflow_up: number;
  compute_us: number;
  queue_max_down_bytes: number;
  critical: Record<string, number> | null;
}

/** A resource of the page, whatever carries it. */
export interface Resource {
  index: number;
  parent: number | null;
  url: string;
  kind: string;
  host: string;
  afterLoad: boolean;
}

/** A request of the load shown. Times are milliseconds since navigation start. */
export interface Request {
  resource: Resource;
  connection: number | null;
  status: number | null;
  outcome: "complete" | "failed" | "pending";
  reason: string | null;
  discovered: number;
  dnsStart: number | null;
  dnsEnd: number | null;
  connectStart: number | null;
  connectEnd: number | null;
  tlsEnd: number | null;
  sent: number | null;
  firstByte: number | null;
  complete: number | null;
  used: number | null;
  priority: number;
  headUp: number;
  headDown: number;
  body: number;
}

export interface Connection {
  id: number;
  host: string;
  address: string;
  protocol: string;
  opened: number;
  connected: number | null;
  secured: number | null;
  closed: number | null;
  requests: number;
  bytesUp: number;
  bytesDown: number;
  segmentsDown: number;
  retransmits: number;
  timeouts: number;
  /** What it was opened for, if not for a request that waited. */
  purpose: Purpose | null;
}

export type Purpose = "speculative" | "spare" | "alternate";

/** The load shown of one page, on one network, over one transport. */
export interface Shown {
  network: number;
  transport: number;
  load: Load;
  /** Every load's run and PLT in µs. */
  runs: [number, number | null][];
  requests: Request[];
  connections: Connection[];
  /** What the browser knew of the page's hosts, if it goes by that. */
  known?: KnownHost[];
}

/** What the browser knew of a host when the load began. */
export interface KnownHost {
  /** Its origin. */
  host: string;
  estimates: {
    by: "learned" | "successor";
    /** Learned: connections; successor: the share of visits that used the host. */
    expected: number;
    /** Connections that are opened ahead of need. */
    opens: number;
    /** Whether at least the name is looked up. */
    resolves: boolean;
  }[];
  pipelining?: {
    standing: "red" | "yellow" | "green";
    is_proven: boolean;
    penalty: number;
    classes: Record<string, number>;
  };
}

export interface PageDetail {
  assumptions: Assumption[];
  shown: Shown[];
}

type Column = (number | null)[];

interface PackedDetail {
  assumptions: Assumption[];
  resources: {
    index: number[];
    parent: Column;
    url: string[];
    kind: string[];
    host: string[];
    after_load: boolean[];
  };
  shown: (Omit<Shown, "requests" | "connections"> & {
    requests: {
      resource: number[];
      connection: Column;
      status: Column;
      outcome: number[];
      reason: [number, string][];
      discovered: number[];
      times: Column[];
      priority: number[];
      head_up: number[];
      head_down: number[];
      body: number[];
    };
    connections: {
      id: number[];
      host: string[];
      address: string[];
      protocol: string[];
      opened: number[];
      connected: Column;
      secured: Column;
      closed: Column;
      requests: number[];
      bytes_up: number[];
      bytes_down: number[];
      segments_down: number[];
      retransmits: number[];
      timeouts: number[];
      purpose: [number, Purpose][];
    };
  })[];
}

/** Columns hold tenths of a millisecond. */
const TICKS_PER_MS = 10;

export function unpackOverview(): Promise<Overview> {
  return unpack("data-overview");
}

export async function unpackPage(page: number): Promise<PageDetail> {
  const packed = await unpack<PackedDetail>(`data-page-${page}`);
  const r = packed.resources;
  const resources = r.index.map<Resource>((index, i) => ({
    index,
    parent: r.parent[i]!,
    url: r.url[i]!,
    kind: r.kind[i]!,
    host: r.host[i]!,
    afterLoad: r.after_load[i]!,
  }));
  const shown = packed.shown.map<Shown>((s) => ({
    ...s,
    requests: requests(s.requests, resources),
    connections: connections(s.connections),
  }));
  return { assumptions: packed.assumptions, shown };
}

function requests(c: PackedDetail["shown"][number]["requests"], resources: Resource[]): Request[] {
  const reasons = new Map(c.reason);
  let discovered = 0;
  return c.resource.map((resource, i) => {
    discovered += c.discovered[i]!;
    let last = discovered;
    const times = c.times.map((column) => {
      const step = column[i] ?? null;
      if (step === null) return null;
      last += step;
      return last / TICKS_PER_MS;
    });
    const at = (n: number) => times[n] ?? null;
    return {
      resource: resources[resource]!,
      connection: c.connection[i]!,
      status: c.status[i]!,
      outcome: (["complete", "failed", "pending"] as const)[c.outcome[i]!]!,
      reason: reasons.get(i) ?? null,
      discovered: discovered / TICKS_PER_MS,
      dnsStart: at(0),
      dnsEnd: at(1),
      connectStart: at(2),
      connectEnd: at(3),
      tlsEnd: at(4),
      sent: at(5),
      firstByte: at(6),
      complete: at(7),
      used: at(8),
      priority: c.priority[i]!,
      headUp: c.head_up[i]!,
      headDown: c.head_down[i]!,
      body: c.body[i]!,
    };
  });
}

function connections(c: PackedDetail["shown"][number]["connections"]): Connection[] {
  const ms = (ticks: number | null | undefined) => (ticks == null ? null : ticks / TICKS_PER_MS);
  const purposes = new Map(c.purpose);
  return c.id.map((id, i) => ({
    id,
    host: c.host[i]!,
    address: c.address[i]!,
    protocol: c.protocol[i]!,
    opened: c.opened[i]! / TICKS_PER_MS,
    connected: ms(c.connected[i]),
    secured: ms(c.secured[i]),
    closed: ms(c.closed[i]),
    requests: c.requests[i]!,
    bytesUp: c.bytes_up[i]!,
    bytesDown: c.bytes_down[i]!,
    segmentsDown: c.segments_down[i]!,
    retransmits: c.retransmits[i]!,
    timeouts: c.timeouts[i]!,
    purpose: purposes.get(i) ?? null,
  }));
}

/** Base64 → inflate → JSON of the element called `id`. */
async function unpack<T>(id: string): Promise<T> {
  const text = document.getElementById(id)?.textContent;
  if (!text) throw new Error(`the report holds no ${id}`);
  const packed = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const plain = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  return (await new Response(plain).json()) as T;
}
