// The entries of a commit in their stored form, and their conversion to rows.
import type { DatabaseSync } from "node:sqlite";
import { hash } from "node:crypto";
import type { BillPart, Settle, Usage } from "tollgate/plugin";
import { type LedgerRow, type MeterAmount, NO_SETTLE_FIELDS } from "tollgate/store";
import { parseNote } from "./chain-note.ts";
import { type CallTerms, termsFromTuple, type TermsTuple } from "./call-terms.ts";

export interface StoredBatch {
  /** Sequence number of the first entry. The others follow without gaps. */
  first: number;
  instance: string;
  terms: string;
  rows: string;
}

export const BATCH_COLUMNS = "first, instance, terms, rows";

/** Computes the hash of a chain link from the previous link and the content of the commit. */
export const chainHash = (before: string, { instance, terms, rows }: Omit<StoredBatch, "first">) =>
  hash("sha256", `${before}\n${instance}\n${terms}\n${rows}`);

type CallFields = [attempt: string, request: string, n: number, terms: number];
type AmountText = string | null;
type ReserveTuple = [
  "r",
  at: number,
  ...CallFields,
  hold: AmountText,
  taken: readonly [string, string][] | null,
];
type SettleTuple = [
  "s",
  at: number,
  ...CallFields,
  hold: AmountText,
  state: Settle["state"],
  cost: AmountText,
  outcome: string,
  usage: Usage,
  upstreamId: string | null,
  upstreamCost: AmountText,
  finish: string | null,
  ms: NonNullable<Settle["ms"]> | null,
  parts: readonly (Omit<BillPart, "costNano"> & { costNano: AmountText })[] | null,
];
type AdjustTuple = [
  "a",
  at: number,
  ...CallFields,
  usage: Usage,
  cost: AmountText,
  reason: string | null,
  actor: string | null,
];

const parseAmount = (text: AmountText): bigint | null => (text === null ? null : BigInt(text));

/** Decodes the rows of a batch. Labels are hashes, as in the chain. A note has no rows. */
export function decodeRows({ instance, terms, rows }: StoredBatch): LedgerRow[] {
  if (parseNote(rows)) return [];
  const values = JSON.parse(rows) as unknown[];
  const list = (JSON.parse(terms) as TermsTuple[]).map(termsFromTuple);
  return values.map((one) =>
    decodeRow(one as ReserveTuple | SettleTuple | AdjustTuple, instance, list),
  );
}

function decodeRow(
  v: ReserveTuple | SettleTuple | AdjustTuple,
  instance: string,
  list: readonly ReturnType<typeof termsFromTuple>[],
): LedgerRow {
  const [, at, attempt, request, n, number] = v;
  const { key, target, privacy, labels, account, price, clientRequest } = list[number]!;
  const row: LedgerRow = {
    ...NO_SETTLE_FIELDS,
    kind: "reserve",
    attempt,
    request,
    n,
    at,
    instance,
    key,
    target,
    privacy,
    labels,
    account,
    price,
    clientRequest,
    meterAmounts: [],
    holdNano: null,
    state: "open",
    outcome: "open",
  };
  switch (v[0]) {
    case "r":
      row.holdNano = parseAmount(v[6]);
      row.meterAmounts = (v[7] ?? []).map(([id, take]): MeterAmount => [id, BigInt(take)]);
      return row;
    case "s":
      row.kind = "settle";
      row.holdNano = parseAmount(v[6]);
      row.state = v[7];
      row.costNano = parseAmount(v[8]);
      row.outcome = v[9];
      row.usage = v[10];
      row.upstreamId = v[11] ?? undefined;
      row.upstreamCostNano = parseAmount(v[12]) ?? undefined;
      row.finish = v[13] ?? undefined;
      row.ms = v[14] ?? undefined;
      row.parts = v[15]?.map((part) => ({ ...part, costNano: parseAmount(part.costNano) }));
      return row;
    case "a":
      row.kind = "adjust";
      row.usage = v[6];
      row.costNano = parseAmount(v[7]);
      row.state = "exact";
      row.outcome = "adjusted";
      row.reason = v[8] ?? undefined;
      row.actor = v[9] ?? undefined;
      return row;
  }
}

/** Fields of a settle or an adjustment that rollups need in addition to the terms. */
export type SettledFields = Pick<
  LedgerRow,
  "kind" | "at" | "state" | "outcome" | "usage" | "costNano"
>;

/**
 * Calls `each` for every row that rollups count, with only the fields they need. Terms are decoded
 * once for all rows that share them.
 * @returns The number of all rows in the batch.
 */
export function forEachSettledRow(
  { terms, rows }: Pick<StoredBatch, "terms" | "rows">,
  each: (row: SettledFields, said: string, terms: () => CallTerms) => void,
): number {
  const list = JSON.parse(terms) as TermsTuple[];
  const texts: string[] = [];
  const all = JSON.parse(rows) as (ReserveTuple | SettleTuple | AdjustTuple)[];
  for (const v of all) {
    if (v[0] !== "s" && v[0] !== "a") continue;
    const place = v[5];
    const said = (texts[place] ??= JSON.stringify(list[place]));
    const own = () => termsFromTuple(list[place]!);
    const at = v[1];
    if (v[0] === "s")
      each(
        {
          kind: "settle",
          at,
          state: v[7],
          outcome: v[9],
          usage: v[10],
          costNano: parseAmount(v[8]),
        },
        said,
        own,
      );
    else
      each(
        {
          kind: "adjust",
          at,
          state: "exact",
          outcome: "adjusted",
          usage: v[6],
          costNano: parseAmount(v[7]),
        },
        said,
        own,
      );
  }
  return all.length;
}

/**
 * A reserve that was kept when its rows were compacted. `isSettled`: its settle was compacted too.
 */
export interface RetainedBatch extends StoredBatch {
  readonly isSettled: boolean;
}

/** Reads the retained reserves of one attempt, or of all attempts. */
export function* readRetainedReserves(
  db: DatabaseSync,
  attempt?: string,
): Generator<RetainedBatch, void> {
  const all = db.prepare(
    "SELECT seq AS first, is_settled, instance, terms, rows FROM retained_reserve WHERE ?1 IS NULL OR attempt = ?1 ORDER BY seq",
  );
  for (const { is_settled, ...stored } of all.iterate(attempt ?? null))
    yield { ...(stored as unknown as StoredBatch), isSettled: is_settled === 1 };
}

/** Finds rows by their position. */
export interface RowLookup {
  /** Returns the commit that contains an entry. */
  batchOf(seq: number): StoredBatch | undefined;
  getRow(seq: number): LedgerRow | undefined;
  /**
   * Returns the sequence numbers of the reserve, the settle, and the adjustments of an attempt, if
   * they exist.
   */
  findCall(
    attempt: string,
  ): { reserve: number; settle: number | undefined; adjusts: number[] } | undefined;
}

export function createRowLookup(db: DatabaseSync): RowLookup {
  const holding = db.prepare(
    `SELECT ${BATCH_COLUMNS} FROM batch WHERE first <= ? AND first > coalesce((SELECT last FROM checkpoint), 0) ORDER BY first DESC LIMIT 1`,
  );
  const carried = db.prepare(
    "SELECT seq AS first, instance, terms, rows FROM retained_reserve WHERE seq = ?",
  );
  const call = db.prepare("SELECT first FROM call WHERE attempt = ?");
  const done = db.prepare("SELECT first FROM closed_call WHERE reserve = ?");
  const adjusts = db.prepare(
    "SELECT seq FROM adjustment WHERE attempt = ? AND seq > coalesce((SELECT last FROM checkpoint), 0) ORDER BY seq",
  );
  const at = (seq: number) =>
    (holding.get(seq) ?? carried.get(seq)) as unknown as StoredBatch | undefined;

  function find(first: unknown, attempt: string, kind: LedgerRow["kind"]): number | undefined {
    const stored = at(Number(first));
    const i = stored
      ? decodeRows(stored).findIndex((row) => row.attempt === attempt && row.kind === kind)
      : -1;
    return i < 0 ? undefined : stored!.first + i;
  }

  return {
    batchOf: at,
    getRow(seq) {
      const stored = at(seq);
      return stored && decodeRows(stored)[seq - stored.first];
    },
    findCall(attempt) {
      const begun = call.get(attempt);
      const reserve = begun && find(begun["first"], attempt, "reserve");
      if (reserve === undefined) return undefined;
      const ended = done.get(reserve);
      return {
        reserve,
        settle: ended && find(ended["first"], attempt, "settle"),
        adjusts: adjusts.all(attempt).map(({ seq }) => Number(seq)),
      };
    },
  };
}
