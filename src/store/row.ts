// One line of the ledger. Every row can be read alone: a settle repeats whose call it was.
import type {
  CallState,
  StoreCommand,
  Entry,
  HeadersOut,
  LedgerQuery,
  MovedRow,
  Opt,
  BillPart,
  Privacy,
  Reserve,
  Settle,
  Target,
  Usage,
} from "../plugin/index.ts";
import { depthOf, factsOf, meets } from "./facts.ts";
import type { Taken } from "./meter.ts";

/** One line of the ledger, as a store keeps it. A settle and an adjustment repeat whose call it was. */
export interface LedgerRow {
  kind: Entry["kind"];
  attempt: string;
  request: string;
  n: number;
  at: number;
  instance: string;
  key: string;
  target: Target;
  privacy: Privacy;
  labels: HeadersOut;
  account: Opt<string>;
  price: string | null;
  asked: Reserve["asked"];
  taken: readonly Taken[];
  holdNano: bigint | null;
  usage: Usage;
  costNano: bigint | null;
  state: CallState | "open";
  outcome: string;
  upstreamId: Opt<string>;
  upstreamCostNano: Opt<bigint>;
  parts: Opt<readonly BillPart[]>;
  finish: Opt<string>;
  ms: Settle["ms"];
  reason: Opt<string>;
  actor: Opt<string>;
}

/** What the ledger knows of an attempt. */
export interface CallRows {
  reserve: LedgerRow;
  settle: LedgerRow | undefined;
}

/** What progress said of an open call. */
export interface Progress {
  readonly usage: Usage;
  readonly costNano: bigint | null;
}

/** The outcome that recovery writes; a settle that still comes is a correction of it. */
export const PRESUMED = "presumed";

/** How it is signed. */
export const LATE = "settled late";
/** The actor of corrections that the ledger makes by itself. */
export const LEDGER = "ledger";

/** What only a settle or an adjustment says. */
export const UNSAID = {
  usage: {},
  costNano: null,
  upstreamId: undefined,
  upstreamCostNano: undefined,
  parts: undefined,
  finish: undefined,
  ms: undefined,
  reason: undefined,
  actor: undefined,
} as const;

/** The row of a reserve. */
export const reserved = (
  c: Reserve & { at: number },
  instance: string,
  taken: readonly Taken[],
): LedgerRow => ({
  ...UNSAID,
  kind: "reserve",
  attempt: c.attempt,
  request: c.request,
  n: c.n,
  at: c.at,
  instance,
  key: c.key,
  target: c.target,
  privacy: c.privacy,
  labels: c.labels,
  account: c.account,
  price: c.price,
  asked: c.asked,
  taken,
  holdNano: c.holdNano,
  state: "open",
  outcome: "open",
});

/** The row of a settle, after the row of its reserve. */
export const settled = (
  of: LedgerRow,
  c: Settle & { at: number },
  instance: string,
): LedgerRow => ({
  ...of,
  kind: "settle",
  at: c.at,
  instance,
  taken: [],
  usage: c.usage,
  costNano: c.costNano,
  state: c.state,
  outcome: c.outcome,
  upstreamId: c.upstreamId,
  upstreamCostNano: c.upstreamCostNano,
  parts: c.parts,
  finish: c.finish,
  ms: c.ms,
});

/**
 * When recovery is: one moment for all that it presumes, and not before any of it began, whatever the clock says. A clock
 * that went from one call's time to the next one's would let rates drain by time that has not passed.
 */
export const recoveryAt = (dead: readonly { row: Pick<LedgerRow, "at"> }[], now: number): number =>
  dead.reduce((latest, { row }) => Math.max(latest, row.at), now);

/** What recovery writes for a call that a dead owner left open: from what was last heard of it, else from its hold. */
export const presumed = (
  { attempt, holdNano }: Pick<LedgerRow, "attempt" | "holdNano">,
  heard: Progress | undefined,
  now: number,
): Settle & { at: number } => {
  const costNano = heard?.costNano ?? holdNano;
  return {
    do: "settle",
    attempt,
    at: now,
    // Without a price there is no amount to estimate.
    state: costNano === null ? "unpriced" : "estimated",
    usage: heard?.usage ?? {},
    costNano,
    outcome: PRESUMED,
  };
};

/** An adjustment's usage is for the reader: totals count what was settled. */
export const adjusted = (
  of: LedgerRow,
  c: Omit<Extract<StoreCommand, { do: "adjust" }>, "do"> & { usage?: Usage },
  instance: string,
): LedgerRow => ({
  ...of,
  ...UNSAID,
  kind: "adjust",
  at: c.at,
  instance,
  taken: [],
  holdNano: null,
  usage: c.usage ?? {},
  costNano: c.costNano,
  state: "exact",
  outcome: "adjusted",
  reason: c.reason,
  actor: c.actor,
});

/**
 * Attempt, kind and this are a row's identity: two rows with one identity are one row. A call has one reserve, one
 * settle, and any number of adjustments; the truth about a presumed call comes once, whatever it says.
 */
export const nth = (row: LedgerRow): string =>
  row.kind !== "adjust"
    ? ""
    : row.actor === LEDGER && row.reason === LATE
      ? LATE
      : JSON.stringify([row.at, `${row.costNano}`, row.reason, row.actor]);

/** A row as it is read: where it stands, and without what is the store's own. */
export function toEntry(row: LedgerRow, seq: number): Entry {
  const { taken: _, upstreamId, ...rest } = row;
  return { seq, ...rest, ...(upstreamId === undefined ? {} : { upstreamId }) };
}

/** A row on its way to another store. */
export function movedRow({ taken, upstreamId, ...rest }: LedgerRow): MovedRow {
  return { ...rest, taken, ...(upstreamId === undefined ? {} : { upstreamId }) };
}

/** The same as the other store keeps it. */
export const rowFrom = (row: MovedRow): LedgerRow => ({
  ...UNSAID,
  ...row,
  n: row.n ?? 0,
  instance: row.instance ?? "",
  privacy: row.privacy ?? "off",
  account: row.account,
  price: row.price ?? null,
  asked: row.asked,
  holdNano: row.holdNano ?? null,
  upstreamId: row.upstreamId,
  upstreamCostNano: row.upstreamCostNano ?? undefined,
  parts: row.parts,
  finish: row.finish,
  ms: row.ms,
  reason: row.reason,
  actor: row.actor,
});

/** A reserve is in state "open" only while its call is; `closed` says whether it is over. */
export const matches = (row: LedgerRow, query: LedgerQuery, closed: boolean): boolean =>
  (query.attempt === undefined || row.attempt === query.attempt) &&
  (query.upstreamId === undefined || row.upstreamId === query.upstreamId) &&
  (query.from === undefined || row.at >= query.from) &&
  (query.to === undefined || row.at < query.to) &&
  (query.state === undefined ||
    (row.state === query.state && !(row.kind === "reserve" && closed))) &&
  (depthOf([], query) === undefined || meets(factsOf(row), query));
