// What the ledger says of one request: each attempt with its rows, what it cost and by which lines of its price.
import { halfEven } from "../../money/decimal.ts";
import { billOf } from "../../money/price.ts";
import type { Unit } from "../../model/usage.ts";
import type { Entry, Store } from "../../plugin/store.ts";

/** A request is never sent to more candidates than this, by far. */
const MOST_ATTEMPTS = 16;

/** One attempt, by its rows. */
export interface BilledAttempt {
  readonly attempt: string;
  readonly n: number;
  readonly key: string;
  readonly account: string | undefined;
  readonly labels: Entry["labels"];
  readonly privacy: Entry["privacy"];
  readonly asked: Entry["asked"];
  readonly target: Entry["target"];
  readonly reservedAt: number;
  /** Undefined: it is open. */
  readonly settledAt: number | undefined;
  readonly state: Entry["state"];
  readonly outcome: string;
  readonly finish: string | undefined;
  readonly ms: Entry["ms"];
  readonly usage: Entry["usage"];
  readonly holdNano: bigint | null | undefined;
  /** Its settle row's; corrections are beside it. null: no known price. */
  readonly costNano: bigint | null;
  /** The hash of the price that was pinned. */
  readonly price: string | null | undefined;
  /** What the pinned price makes of the usage, where that is the whole bill. */
  readonly lines: readonly BilledLine[] | undefined;
  readonly parts: Entry["parts"];
  readonly upstreamId: string | undefined;
  readonly upstreamCostNano: bigint | undefined;
  readonly adjustments: readonly Adjustment[];
  /** Its rows in the ledger. */
  readonly rows: readonly number[];
  /** Which process wrote them. */
  readonly instance: string | undefined;
}

export interface BilledLine {
  readonly unit: Unit;
  readonly count: number;
  readonly nano: bigint;
}

interface Adjustment extends Pick<Entry, "at" | "costNano" | "reason" | "actor"> {
  readonly row: number;
}

type Read = Pick<Store, "entries" | "price">;

/** In their order; empty where the ledger knows nothing of it. */
export async function billedOf(store: Read, request: string): Promise<BilledAttempt[]> {
  const found: BilledAttempt[] = [];
  for (let n = 1; n <= MOST_ATTEMPTS; n++) {
    const { items } = await store.entries({ attempt: `${request}.${n}` }, { limit: 100 });
    const reserve = items.find(({ kind }) => kind === "reserve");
    if (!reserve) break;
    found.push(await attemptOf(store, reserve, items, n));
  }
  return found;
}

async function attemptOf(
  store: Read,
  reserve: Entry,
  rows: readonly Entry[],
  n: number,
): Promise<BilledAttempt> {
  const settle = rows.find(({ kind }) => kind === "settle");
  const last = settle ?? reserve;
  return {
    attempt: reserve.attempt,
    n,
    key: reserve.key,
    account: reserve.account,
    labels: reserve.labels,
    privacy: reserve.privacy,
    asked: reserve.asked,
    target: reserve.target,
    reservedAt: reserve.at,
    settledAt: settle?.at,
    state: last.state,
    outcome: last.outcome,
    finish: last.finish,
    ms: last.ms,
    usage: last.usage,
    holdNano: reserve.holdNano,
    costNano: last.costNano,
    price: reserve.price,
    lines: settle && (await linesOf(store, reserve, settle)),
    parts: last.parts,
    upstreamId: last.upstreamId,
    upstreamCostNano: last.upstreamCostNano,
    adjustments: rows
      .filter(({ kind }) => kind === "adjust")
      .map(({ seq, at, costNano, reason, actor }) => ({ row: seq, at, costNano, reason, actor })),
    rows: rows.map(({ seq }) => seq),
    instance: last.instance,
  };
}

/** Undefined where more decided than counts and the hour: a tier, a region, several models. */
async function linesOf(
  store: Read,
  { at, price: hash }: Entry,
  { usage, costNano, parts }: Entry,
): Promise<readonly BilledLine[] | undefined> {
  if (hash === null || hash === undefined || costNano === null || parts) return undefined;
  const price = await store.price?.(hash);
  const bill = price && billOf(usage, price, { at });
  if (bill?.nano !== costNano) return undefined;
  return bill.lines.map(({ unit, count, nano }) => ({
    unit,
    count,
    nano: halfEven(nano),
  }));
}
