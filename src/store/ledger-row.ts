// One line of the ledger. Every row can be read alone: a settle repeats whose call it was.
import type {
  CallState,
  StoreCommand,
  LedgerEntry,
  HeadersOut,
  LedgerQuery,
  TransferredRow,
  Opt,
  BillPart,
  Privacy,
  Reserve,
  Settle,
  CallTarget,
  Usage,
} from "../plugin/index.ts";
import { rollupLevelFor, dimensionsOf, matchesDimensions } from "./row-dimensions.ts";
import type { MeterAmount } from "./meter.ts";

/** One line of the ledger, as a store keeps it. A settle and an adjustment repeat whose call it was. */
export interface LedgerRow {
  kind: LedgerEntry["kind"];
  attempt: string;
  request: string;
  n: number;
  at: number;
  instance: string;
  key: string;
  target: CallTarget;
  privacy: Privacy;
  labels: HeadersOut;
  account: Opt<string>;
  price: string | null;
  clientRequest: Reserve["clientRequest"];
  meterAmounts: readonly MeterAmount[];
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
export const RECOVERED = "recovered";

/** How it is signed. */
export const LATE_SETTLE = "settled late";
/** The actor of corrections that the ledger makes by itself. */
export const LEDGER_ACTOR = "ledger";

/** What only a settle or an adjustment says. */
export const NO_SETTLE_FIELDS = {
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
export const reserveRow = (
  c: Reserve & { at: number },
  instance: string,
  taken: readonly MeterAmount[],
): LedgerRow => ({
  ...NO_SETTLE_FIELDS,
  kind: "reserve",
  attempt: c.attempt,
  request: c.request,
  n: c.number,
  at: c.at,
  instance,
  key: c.key,
  target: c.target,
  privacy: c.privacy,
  labels: c.labels,
  account: c.account,
  price: c.price,
  clientRequest: c.clientRequest,
  meterAmounts: taken,
  holdNano: c.holdNano,
  state: "open",
  outcome: "open",
});

/** The row of a settle, after the row of its reserve. */
export const settleRow = (
  of: LedgerRow,
  c: Settle & { at: number },
  instance: string,
): LedgerRow => ({
  ...of,
  kind: "settle",
  at: c.at,
  instance,
  meterAmounts: [],
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
export const recoveryTime = (
  dead: readonly { row: Pick<LedgerRow, "at"> }[],
  now: number,
): number => dead.reduce((latest, { row }) => Math.max(latest, row.at), now);

/** What recovery writes for a call that a dead owner left open: from what was last heard of it, else from its hold. */
export const recoveredSettle = (
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
    outcome: RECOVERED,
  };
};

/** An adjustment's usage is for the reader: totals count what was settled. */
export const adjustRow = (
  of: LedgerRow,
  c: Omit<Extract<StoreCommand, { do: "adjust" }>, "do"> & { usage?: Usage },
  instance: string,
): LedgerRow => ({
  ...of,
  ...NO_SETTLE_FIELDS,
  kind: "adjust",
  at: c.at,
  instance,
  meterAmounts: [],
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
export const rowQualifier = (row: LedgerRow): string =>
  row.kind !== "adjust"
    ? ""
    : row.actor === LEDGER_ACTOR && row.reason === LATE_SETTLE
      ? LATE_SETTLE
      : JSON.stringify([row.at, `${row.costNano}`, row.reason, row.actor]);

/** A row as it is read: where it stands, and without what is the store's own. */
export function toEntry(row: LedgerRow, seq: number): LedgerEntry {
  const { meterAmounts: _, upstreamId, ...rest } = row;
  return { seq, ...rest, ...(upstreamId === undefined ? {} : { upstreamId }) };
}

/** A row on its way to another store. */
export function toMovedRow({ meterAmounts, upstreamId, ...rest }: LedgerRow): TransferredRow {
  return { ...rest, meterAmounts, ...(upstreamId === undefined ? {} : { upstreamId }) };
}

/** The same as the other store keeps it. */
export const fromMovedRow = (row: TransferredRow): LedgerRow => ({
  ...NO_SETTLE_FIELDS,
  ...row,
  n: row.n ?? 0,
  instance: row.instance ?? "",
  privacy: row.privacy ?? "off",
  account: row.account,
  price: row.price ?? null,
  clientRequest: row.clientRequest,
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
export const matchesQuery = (row: LedgerRow, query: LedgerQuery, closed: boolean): boolean =>
  (query.attempt === undefined || row.attempt === query.attempt) &&
  (query.upstreamId === undefined || row.upstreamId === query.upstreamId) &&
  (query.from === undefined || row.at >= query.from) &&
  (query.to === undefined || row.at < query.to) &&
  (query.state === undefined ||
    (row.state === query.state && !(row.kind === "reserve" && closed))) &&
  (rollupLevelFor([], query) === undefined || matchesDimensions(dimensionsOf(row), query));
