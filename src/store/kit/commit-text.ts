// The text of a commit: rows as JSON lists, with the terms that they share. Archives write rows in
// this form, and so do stores that keep a commit in one piece. Labels in rows are hashes of their
// texts.
//
// Amounts exceed the range of JSON numbers, so they are decimal text.
import { hash } from "node:crypto";
import type { BillPart, Opt, Settle, Usage, Reserve } from "../../plugin/index.ts";
import { type LedgerRow, NO_SETTLE_FIELDS } from "../ledger-row.ts";
import type { MeterAmount } from "../meter.ts";

/** The rows of one commit of one instance. */
export interface CommitText {
  readonly instance: string;
  readonly terms: string;
  readonly rows: string;
}

/** Computes the hash of a chain link from the previous link and the content of the commit. */
export const commitHash = (before: string, { instance, terms, rows }: CommitText): string =>
  hash("sha256", `${before}\n${instance}\n${terms}\n${rows}`);

type AmountText = string | null;
type CallFields = [attempt: string, request: string, n: number, terms: number];
type ReserveTuple = [
  "r",
  at: number,
  ...CallFields,
  hold: AmountText,
  taken: readonly [meter: MeterText, take: string][] | null,
];
/** The ID of a meter, or the place of an amount of the same meter in the same commit. */
type MeterText = string | number;
type PartTuple = Omit<BillPart, "costNano"> & { costNano: AmountText };
type SettleFields = [
  state: Settle["state"],
  cost: AmountText,
  outcome: string,
  usage: Usage,
  upstreamId: string | null,
  upstreamCost: AmountText,
  finish: string | null,
  ms: NonNullable<Settle["ms"]> | null,
  parts: readonly PartTuple[] | null,
];
type SettleTuple = ["s", at: number, ...CallFields, hold: AmountText, ...SettleFields];
type AdjustTuple = [
  "a",
  at: number,
  ...CallFields,
  usage: Usage,
  cost: AmountText,
  reason: string | null,
  actor: string | null,
];
type RowTuple = ReserveTuple | SettleTuple | AdjustTuple;

/** Encodes an amount as decimal text. */
export const encodeAmount = (value: bigint | null | undefined): string | null =>
  value == null ? null : String(value);
const decodeAmount = (text: AmountText): bigint | null => (text === null ? null : BigInt(text));

type SettleData = Pick<LedgerRow, "state" | "costNano" | "outcome" | "usage"> &
  Partial<Pick<LedgerRow, "upstreamId" | "upstreamCostNano" | "finish" | "ms" | "parts">>;

/**
 * Encodes the fields of a settle row that follow kind, time, attempt, request, n, terms, and hold.
 * The result is a JSON list without its brackets.
 */
export const encodeSettleFields = (c: SettleData): string =>
  JSON.stringify([
    c.state,
    encodeAmount(c.costNano),
    c.outcome,
    c.usage,
    c.upstreamId,
    encodeAmount(c.upstreamCostNano),
    c.finish,
    c.ms,
    c.parts?.map((part) => ({ ...part, costNano: encodeAmount(part.costNano) })),
  ]).slice(1, -1);

/**
 * Encodes the identity of a row: attempt, request, and n. The result is a JSON list without its
 * brackets.
 */
export const encodeIdentity = ({
  attempt,
  request,
  n,
}: Pick<LedgerRow, "attempt" | "request" | "n">): string =>
  `${JSON.stringify(attempt)},${JSON.stringify(request)},${n}`;

/** The encoded beginning of an amount, by the ID of its meter. Calls of a meter follow each other. */
const METER_PREFIXES = new Map<string, string>();
const MAX_METER_PREFIXES = 10_000;

/** Number of amounts of a row that have a place. More amounts have no place, and contain their IDs. */
export const PLACES_PER_ROW = 64;

/**
 * Encodes the meter amounts of one commit. The ID of a meter is written once. Later amounts of the
 * same meter contain the place of the first one: the index of its row times `PLACES_PER_ROW`, plus
 * its index in that row.
 */
export class MeterAmountEncoder {
  /** The encoded beginning of later amounts, by the ID of the meter. */
  readonly #places = new Map<string, string>();

  /**
   * Encodes the amounts of a reserve.
   * @param row Index of the row in the commit.
   */
  encode(taken: readonly MeterAmount[], row: number): string {
    if (taken.length === 0) return "null";
    let text = "[";
    for (let i = 0; i < taken.length; i++) {
      const [id, amount] = taken[i]!;
      let prefix = this.#places.get(id);
      if (prefix === undefined) {
        prefix = meterPrefix(id);
        if (i < PLACES_PER_ROW) this.#places.set(id, `[${row * PLACES_PER_ROW + i},"`);
      }
      text += i === 0 ? `${prefix}${amount}"]` : `,${prefix}${amount}"]`;
    }
    return `${text}]`;
  }

  /** Begins the next commit. */
  clear(): void {
    if (this.#places.size > 0) this.#places.clear();
  }
}

/** Returns the ID of a meter in the amounts of a commit. */
function resolveMeter(of: MeterText, rows: readonly (readonly unknown[])[]): string {
  if (typeof of === "string") return of;
  const row = rows[Math.floor(of / PLACES_PER_ROW)] as ReserveTuple;
  return row[TAKEN_INDEX]![of % PLACES_PER_ROW]![0] as string;
}

function meterPrefix(id: string): string {
  let prefix = METER_PREFIXES.get(id);
  if (prefix === undefined) {
    if (METER_PREFIXES.size >= MAX_METER_PREFIXES) METER_PREFIXES.clear();
    prefix = `[${JSON.stringify(id)},"`;
    METER_PREFIXES.set(id, prefix);
  }
  return prefix;
}

/** Encodes an adjustment. */
export const encodeAdjust = (row: LedgerRow, terms: number): string =>
  JSON.stringify([
    "a",
    Math.floor(row.at),
    row.attempt,
    row.request,
    row.n,
    terms,
    row.usage,
    encodeAmount(row.costNano),
    row.reason,
    row.actor,
  ]);

function encodeRow(row: LedgerRow, terms: number, i: number, amounts: MeterAmountEncoder): string {
  if (row.kind === "adjust") return encodeAdjust(row, terms);
  const hold = row.holdNano === null ? "null" : `"${row.holdNano}"`;
  const begin = `${Math.floor(row.at)},${encodeIdentity(row)},${terms},${hold}`;
  return row.kind === "reserve"
    ? `["r",${begin},${amounts.encode(row.meterAmounts, i)}]`
    : `["s",${begin},${encodeSettleFields(row)}]`;
}

/** Encodes the rows of a commit. Labels must be hashes. */
export function encodeCommit(instance: string, rows: readonly LedgerRow[]): CommitText {
  const terms = new Map<string, number>();
  const amounts = new MeterAmountEncoder();
  const texts = rows.map((row, i) => {
    const own = serializeTerms(row);
    let index = terms.get(own);
    if (index === undefined) terms.set(own, (index = terms.size));
    return encodeRow(row, index, i, amounts);
  });
  return { instance, terms: `[${[...terms.keys()].join()}]`, rows: `[${texts.join()}]` };
}

/** Returns the hashes of the labels in the terms of a commit. */
export function* textHashesIn(terms: string): Generator<string, void> {
  for (const listed of JSON.parse(terms) as TermsTuple[])
    yield* Object.values(listed[LABELS_INDEX]) as string[];
}

const NOTE_PREFIX = '[["n",';
/** Whether the rows of a commit are a note about the ledger. A note is alone in its commit. */
export const isNote = (rows: string): boolean => rows.startsWith(NOTE_PREFIX);

/** Decodes the rows of a commit. A note has no rows. */
export function decodeCommit({ instance, terms, rows }: CommitText): LedgerRow[] {
  if (isNote(rows)) return [];
  const values = JSON.parse(rows) as RowTuple[];
  const list = (JSON.parse(terms) as TermsTuple[]).map(termsFromTuple);
  return values.map((one) => decodeRow(one, instance, list, values));
}

function decodeRow(
  v: RowTuple,
  instance: string,
  list: readonly CallTerms[],
  all: readonly RowTuple[],
): LedgerRow {
  const [, at, attempt, request, n, number] = v;
  const { key, target, privacy, labels, account, price, clientRequest, job } = list[number]!;
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
    ...(job !== undefined && { job }),
  };
  switch (v[0]) {
    case "r":
      row.holdNano = decodeAmount(v[6]);
      row.meterAmounts = (v[TAKEN_INDEX] ?? []).map(([meter, take]): MeterAmount => [
        resolveMeter(meter, all),
        BigInt(take),
      ]);
      return row;
    case "s":
      row.kind = "settle";
      row.holdNano = decodeAmount(v[6]);
      row.state = v[7];
      row.costNano = decodeAmount(v[8]);
      row.outcome = v[9];
      row.usage = v[10];
      row.upstreamId = v[11] ?? undefined;
      row.upstreamCostNano = decodeAmount(v[12]) ?? undefined;
      row.finish = v[13] ?? undefined;
      row.ms = v[14] ?? undefined;
      row.parts = v[15]?.map((part) => ({ ...part, costNano: decodeAmount(part.costNano) }));
      return row;
    case "a":
      row.kind = "adjust";
      row.usage = v[6];
      row.costNano = decodeAmount(v[7]);
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
 * Calls `each` for every row that rollups count, with only the fields that they need. Terms are
 * decoded once for all rows that share them.
 * @returns The number of all rows in the commit.
 */
export function forEachSettledRow(
  { terms, rows }: Pick<CommitText, "terms" | "rows">,
  each: (row: SettledFields, termsText: string, terms: () => CallTerms) => void,
): number {
  const list = JSON.parse(terms) as TermsTuple[];
  const texts: string[] = [];
  const all = JSON.parse(rows) as RowTuple[];
  for (const v of all) {
    if (v[0] !== "s" && v[0] !== "a") continue;
    const [, at, , , , place] = v;
    const termsText = (texts[place] ??= JSON.stringify(list[place]));
    const fields: SettledFields =
      v[0] === "s"
        ? {
            kind: "settle",
            at,
            state: v[7],
            outcome: v[9],
            usage: v[10],
            costNano: decodeAmount(v[8]),
          }
        : {
            kind: "adjust",
            at,
            state: "exact",
            outcome: "adjusted",
            usage: v[6],
            costNano: decodeAmount(v[7]),
          };
    each(fields, termsText, () => termsFromTuple(list[place]!));
  }
  return all.length;
}

const TERMS_INDEX = 5;
/** Index of the meter amounts in a reserve. */
const TAKEN_INDEX = 7;

/** Extracts one row of a commit as a commit with one row. */
export function extractRow({ instance, terms, rows }: CommitText, i: number): CommitText {
  const all = JSON.parse(rows) as RowTuple[];
  const row = all[i]!;
  const own = (JSON.parse(terms) as unknown[])[row[TERMS_INDEX]];
  const extracted: unknown[] = [...row];
  extracted[TERMS_INDEX] = 0;
  if (row[0] === "r" && row[TAKEN_INDEX])
    extracted[TAKEN_INDEX] = row[TAKEN_INDEX].map(([meter, take]) => [
      resolveMeter(meter, all),
      take,
    ]);
  return { instance, terms: JSON.stringify([own]), rows: JSON.stringify([extracted]) };
}

// Call terms are facts that calls share: the key, the target, and the price. A commit stores equal
// terms once for all its rows.

/** The facts that calls share. */
export type CallTerms = Pick<
  Reserve,
  "key" | "target" | "privacy" | "labels" | "account" | "price" | "clientRequest"
> & {
  /** ID of the own call of the job that the call belongs to. */
  readonly job?: Opt<string>;
};

/** Terms as a JSON list. */
export type TermsTuple = readonly [
  key: string,
  provider: string,
  model: string,
  protocol: string | null,
  credential: string,
  privacy: Reserve["privacy"],
  labels: Reserve["labels"],
  price: string | null,
  clientRequest: NonNullable<Reserve["clientRequest"]> | null,
  account?: string | null,
  job?: string,
];

/** Index of the labels in the terms tuple. */
export const LABELS_INDEX = 6;

/**
 * Serializes terms as a JSON list. The account and the job are omitted if the call has no account
 * or job.
 */
export const serializeTerms = ({
  key,
  target,
  privacy,
  labels,
  price,
  clientRequest,
  account,
  job,
}: CallTerms): string =>
  JSON.stringify([
    key,
    target.provider,
    target.model,
    target.protocol,
    target.credential,
    privacy,
    labels,
    price,
    clientRequest,
    ...(job !== undefined ? [account, job] : account === undefined ? [] : [account]),
  ]);

/** Returns the terms of a JSON list. */
export const termsFromTuple = ([
  key,
  provider,
  model,
  protocol,
  credential,
  privacy,
  labels,
  price,
  clientRequest,
  account,
  job,
]: TermsTuple): CallTerms => ({
  key,
  target: { provider, model, protocol, credential },
  privacy,
  labels,
  account: account ?? undefined,
  price,
  clientRequest: clientRequest ?? undefined,
  ...(job !== undefined && { job }),
});
