// One line of the ledger. Every row can be interpreted alone, because a settle row repeats the data
// of its call.
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
import { CLIENT_CREDENTIAL } from "../plugin/index.ts";
import { rollupLevelFor, dimensionsOf, matchesDimensions } from "./row-dimensions.ts";
import type { MeterAmount } from "./meter.ts";

/**
 * One row of the ledger in its stored form. Settle and adjustment rows repeat the data of their
 * call.
 */
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
  /** ID of the own call of the job that the call belongs to. */
  job?: Opt<string>;
}

/** The rows of an attempt. */
export interface CallRows {
  reserve: LedgerRow;
  settle: LedgerRow | undefined;
}

/** Last progress of an open call. */
export interface Progress {
  readonly usage: Usage;
  readonly costNano: bigint | null;
}

/** Outcome that recovery writes. */
export const RECOVERED = "recovered";
/** Outcome of a reserve that was applied after its caller had received an error. It is void. */
const ABANDONED = "abandoned";

/**
 * Whether the settle was written for a call whose end was unknown. A settle that arrives later is
 * recorded as a correction: the call's owner was only slow, or it repeated the call.
 */
export const isProvisional = (outcome: string): boolean =>
  outcome === RECOVERED || outcome === ABANDONED;

/** Reason of the correction for a settle after recovery. */
export const LATE_SETTLE = "settled late";
/** Actor of corrections that the ledger itself makes. */
export const LEDGER_ACTOR = "ledger";

/** Default values of fields that only settle and adjustment rows have. */
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

/** Creates the row of a reserve. */
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
  ...(c.job && { job: c.job.attempt }),
});

/** Creates the row of a settle from the row of its reserve. */
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
 * Returns the time of recovery, which is the same for all recovered calls. It is not before the
 * start of any of them, even if the clock was set back. If each call had its own time, rates would
 * drain by time that has not passed.
 */
export const recoveryTime = (
  dead: readonly { row: Pick<LedgerRow, "at"> }[],
  now: number,
): number => dead.reduce((latest, { row }) => Math.max(latest, row.at), now);

/**
 * Returns the settle that recovery writes for an open call of a dead owner. It uses the last
 * progress or, if there is none, the reservation.
 */
export const recoveredSettle = (
  { attempt, holdNano, target }: Pick<LedgerRow, "attempt" | "holdNano" | "target">,
  lastProgress: Progress | undefined,
  now: number,
): Settle & { at: number } => {
  const isExternal = target.credential === CLIENT_CREDENTIAL;
  const costNano = isExternal ? 0n : (lastProgress?.costNano ?? holdNano);
  return {
    do: "settle",
    attempt,
    at: now,
    // Without a price, there is no amount to estimate.
    state: isExternal ? "external" : costNano === null ? "unpriced" : "estimated",
    usage: lastProgress?.usage ?? {},
    costNano,
    outcome: RECOVERED,
  };
};

/**
 * Creates the row of an adjustment. Its usage is informational, because totals count the usage of
 * the settle row.
 */
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
 * Returns the part of a row's identity in addition to attempt and kind. Two rows with the same
 * identity are the same row. A call has one reserve, one settle, and any number of adjustments. The
 * late settle of a recovered call is recorded only once, whatever its content is.
 */
export const rowQualifier = (row: LedgerRow): string =>
  row.kind !== "adjust"
    ? ""
    : row.actor === LEDGER_ACTOR && row.reason === LATE_SETTLE
      ? LATE_SETTLE
      : JSON.stringify([row.at, `${row.costNano}`, row.reason, row.actor]);

/** Converts a row for readers: adds its position and removes the store's internal fields. */
export function toEntry(row: LedgerRow, seq: number): LedgerEntry {
  const { meterAmounts: _, upstreamId, ...rest } = row;
  return { seq, ...rest, ...(upstreamId === undefined ? {} : { upstreamId }) };
}

/** Converts a row for transfer to another store. */
export function toMovedRow({ meterAmounts, upstreamId, ...rest }: LedgerRow): TransferredRow {
  return { ...rest, meterAmounts, ...(upstreamId === undefined ? {} : { upstreamId }) };
}

/** Converts a transferred row for this store. */
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

/**
 * Whether a row matches a query. A reserve row matches the state "open" only while its call is
 * open. `closed`: whether the call has ended.
 */
export const matchesQuery = (row: LedgerRow, query: LedgerQuery, closed: boolean): boolean =>
  (query.attempt === undefined || row.attempt === query.attempt) &&
  (query.upstreamId === undefined || row.upstreamId === query.upstreamId) &&
  (query.from === undefined || row.at >= query.from) &&
  (query.to === undefined || row.at < query.to) &&
  (query.state === undefined ||
    (row.state === query.state && !(row.kind === "reserve" && closed))) &&
  (rollupLevelFor([], query) === undefined || matchesDimensions(dimensionsOf(row), query));
