// Reads the ledger rows of one request: each attempt with its cost and the price lines that apply.
import { roundHalfEven } from "../../money/decimal.ts";
import { calculateBill } from "../../money/price.ts";
import type { Unit } from "../../model/usage.ts";
import type { LedgerEntry, Store } from "../../plugin/store/store.ts";

/**
 * Maximum number of attempts to read. This number is far above the number of candidates of any
 * request.
 */
const MAX_ATTEMPTS = 16;

/** One attempt, assembled from its rows. */
export interface ChargedAttempt {
  readonly attempt: string;
  readonly n: number;
  readonly key: string;
  readonly account: string | undefined;
  readonly labels: LedgerEntry["labels"];
  readonly privacy: LedgerEntry["privacy"];
  readonly clientRequest: LedgerEntry["clientRequest"];
  readonly target: LedgerEntry["target"];
  readonly reservedAt: number;
  /** Time of the settle row. Undefined while the attempt is open. */
  readonly settledAt: number | undefined;
  readonly state: LedgerEntry["state"];
  readonly outcome: string;
  readonly finish: string | undefined;
  readonly ms: LedgerEntry["ms"];
  readonly usage: LedgerEntry["usage"];
  readonly holdNano: bigint | null | undefined;
  /** Cost in the settle row, without corrections. Null if there is no known price. */
  readonly costNano: bigint | null;
  /** Hash of the pinned price. */
  readonly price: string | null | undefined;
  /** The usage that was priced by the pinned price. Set only if the whole bill uses that price. */
  readonly priceLines: readonly ChargedUnit[] | undefined;
  readonly costParts: LedgerEntry["parts"];
  readonly upstreamId: string | undefined;
  readonly upstreamCostNano: bigint | undefined;
  readonly adjustments: readonly Adjustment[];
  /** Numbers of its ledger rows. */
  readonly rowNumbers: readonly number[];
  /** Instance that wrote the rows. */
  readonly instance: string | undefined;
}

export interface ChargedUnit {
  readonly unit: Unit;
  readonly count: number;
  readonly nano: bigint;
}

interface Adjustment extends Pick<LedgerEntry, "at" | "costNano" | "reason" | "actor"> {
  readonly row: number;
}

type ChargesStore = Pick<Store, "listEntries" | "findPrice">;

/** Returns the attempts of a request in order. Empty if the ledger has no rows of it. */
export async function readCharges(store: ChargesStore, request: string): Promise<ChargedAttempt[]> {
  const found: ChargedAttempt[] = [];
  for (let n = 1; n <= MAX_ATTEMPTS; n++) {
    const { items } = await store.listEntries({ attempt: `${request}.${n}` }, { limit: 100 });
    const reserve = items.find(({ kind }) => kind === "reserve");
    if (!reserve) break;
    found.push(await toChargedAttempt(store, reserve, items, n));
  }
  return found;
}

async function toChargedAttempt(
  store: ChargesStore,
  reserve: LedgerEntry,
  rows: readonly LedgerEntry[],
  n: number,
): Promise<ChargedAttempt> {
  const settle = rows.find(({ kind }) => kind === "settle");
  const last = settle ?? reserve;
  return {
    attempt: reserve.attempt,
    n,
    key: reserve.key,
    account: reserve.account,
    labels: reserve.labels,
    privacy: reserve.privacy,
    clientRequest: reserve.clientRequest,
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
    priceLines: settle && (await priceLinesOf(store, reserve, settle)),
    costParts: last.parts,
    upstreamId: last.upstreamId,
    upstreamCostNano: last.upstreamCostNano,
    adjustments: rows
      .filter(({ kind }) => kind === "adjust")
      .map(({ seq, at, costNano, reason, actor }) => ({ row: seq, at, costNano, reason, actor })),
    rowNumbers: rows.map(({ seq }) => seq),
    instance: last.instance,
  };
}

/**
 * Returns the price lines. Returns undefined if the price depended on more than usage and time: a
 * tier, a region, or several models.
 */
async function priceLinesOf(
  store: ChargesStore,
  { at, price: hash }: LedgerEntry,
  { usage, costNano, parts }: LedgerEntry,
): Promise<readonly ChargedUnit[] | undefined> {
  if (hash === null || hash === undefined || costNano === null || parts) return undefined;
  const price = await store.findPrice?.(hash);
  const bill = price && calculateBill(usage, price, { at });
  if (bill?.nano !== costNano) return undefined;
  return bill.lines.map(({ unit, count, nano }) => ({
    unit,
    count,
    nano: roundHalfEven(nano),
  }));
}
