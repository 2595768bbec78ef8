// A commit's entries as the file holds them, and as rows.
import type { DatabaseSync } from "node:sqlite";
import { hash } from "node:crypto";
import type { BillPart, Settle, Usage } from "tollgate/plugin";
import { type LedgerRow, type Taken, UNSAID } from "tollgate/store";
import { noteOf } from "./note.ts";
import { type Common, common, type Listed } from "./terms.ts";

export interface Stored {
  /** Its first entry; the others follow one by one. */
  first: number;
  instance: string;
  terms: string;
  rows: string;
}

export const STORED = "first, instance, terms, rows";

/** One link of the chain: the link before it, and everything that one commit says. */
export const link = (before: string, { instance, terms, rows }: Omit<Stored, "first">) =>
  hash("sha256", `${before}\n${instance}\n${terms}\n${rows}`);

type Who = [attempt: string, request: string, n: number, terms: number];
type Amount = string | null;
type Reserved = ["r", at: number, ...Who, hold: Amount, taken: readonly [string, string][] | null];
type Settled = [
  "s",
  at: number,
  ...Who,
  hold: Amount,
  state: Settle["state"],
  cost: Amount,
  outcome: string,
  usage: Usage,
  upstreamId: string | null,
  upstreamCost: Amount,
  finish: string | null,
  ms: NonNullable<Settle["ms"]> | null,
  parts: readonly (Omit<BillPart, "costNano"> & { costNano: Amount })[] | null,
];
type Adjusted = [
  "a",
  at: number,
  ...Who,
  usage: Usage,
  cost: Amount,
  reason: string | null,
  actor: string | null,
];

const amount = (text: Amount): bigint | null => (text === null ? null : BigInt(text));

/** Labels are hashes here, as the chain has them. A note has no rows. */
export function rowsOf({ instance, terms, rows }: Stored): LedgerRow[] {
  if (noteOf(rows)) return [];
  const values = JSON.parse(rows) as unknown[];
  const list = (JSON.parse(terms) as Listed[]).map(common);
  return values.map((one) => fromText(one as Reserved | Settled | Adjusted, instance, list));
}

function fromText(
  v: Reserved | Settled | Adjusted,
  instance: string,
  list: readonly ReturnType<typeof common>[],
): LedgerRow {
  const [, at, attempt, request, n, number] = v;
  const { key, target, privacy, labels, account, price, asked } = list[number]!;
  const row: LedgerRow = {
    ...UNSAID,
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
    asked,
    taken: [],
    holdNano: null,
    state: "open",
    outcome: "open",
  };
  switch (v[0]) {
    case "r":
      row.holdNano = amount(v[6]);
      row.taken = (v[7] ?? []).map(([id, take]): Taken => [id, BigInt(take)]);
      return row;
    case "s":
      row.kind = "settle";
      row.holdNano = amount(v[6]);
      row.state = v[7];
      row.costNano = amount(v[8]);
      row.outcome = v[9];
      row.usage = v[10];
      row.upstreamId = v[11] ?? undefined;
      row.upstreamCostNano = amount(v[12]) ?? undefined;
      row.finish = v[13] ?? undefined;
      row.ms = v[14] ?? undefined;
      row.parts = v[15]?.map((part) => ({ ...part, costNano: amount(part.costNano) }));
      return row;
    case "a":
      row.kind = "adjust";
      row.usage = v[6];
      row.costNano = amount(v[7]);
      row.state = "exact";
      row.outcome = "adjusted";
      row.reason = v[8] ?? undefined;
      row.actor = v[9] ?? undefined;
      return row;
  }
}

/** What a sum has to know of a settle or a correction, beside its terms. */
export type Counted = Pick<LedgerRow, "kind" | "at" | "state" | "outcome" | "usage" | "costNano">;

/**
 * Each row that sums count, without the rest of it. `said`: its terms as text, which are made rows of once for all that have them. Returns
 * how many rows there are in all.
 */
export function counted(
  { terms, rows }: Pick<Stored, "terms" | "rows">,
  each: (row: Counted, said: string, terms: () => Common) => void,
): number {
  const list = JSON.parse(terms) as Listed[];
  const texts: string[] = [];
  const all = JSON.parse(rows) as (Reserved | Settled | Adjusted)[];
  for (const v of all) {
    if (v[0] !== "s" && v[0] !== "a") continue;
    const place = v[5];
    const said = (texts[place] ??= JSON.stringify(list[place]));
    const own = () => common(list[place]!);
    const at = v[1];
    if (v[0] === "s")
      each(
        { kind: "settle", at, state: v[7], outcome: v[9], usage: v[10], costNano: amount(v[8]) },
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
          costNano: amount(v[7]),
        },
        said,
        own,
      );
  }
  return all.length;
}

/** A reserve from among rows that are gone. `over`: so is its settle. */
export interface Carried extends Stored {
  readonly over: boolean;
}

/** All of them, or that of one attempt. */
export function* carriedIn(db: DatabaseSync, attempt?: string): Generator<Carried, void> {
  const all = db.prepare(
    "SELECT seq AS first, over, instance, terms, rows FROM carried WHERE ?1 IS NULL OR attempt = ?1 ORDER BY seq",
  );
  for (const { over, ...stored } of all.iterate(attempt ?? null))
    yield { ...(stored as unknown as Stored), over: over === 1 };
}

/** Rows by where they are. */
export interface Shelf {
  /** The commit that an entry belongs to. */
  holding(seq: number): Stored | undefined;
  row(seq: number): LedgerRow | undefined;
  /** The reserve, the settle and the adjustments of an attempt, as far as they are there. */
  about(
    attempt: string,
  ): { reserve: number; settle: number | undefined; adjusts: number[] } | undefined;
}

export function createShelf(db: DatabaseSync): Shelf {
  const holding = db.prepare(
    `SELECT ${STORED} FROM batch WHERE first <= ? AND first > coalesce((SELECT last FROM base), 0) ORDER BY first DESC LIMIT 1`,
  );
  const carried = db.prepare(
    "SELECT seq AS first, instance, terms, rows FROM carried WHERE seq = ?",
  );
  const call = db.prepare("SELECT first FROM call WHERE attempt = ?");
  const done = db.prepare("SELECT first FROM done WHERE reserve = ?");
  const adjusts = db.prepare(
    "SELECT seq FROM adjustment WHERE attempt = ? AND seq > coalesce((SELECT last FROM base), 0) ORDER BY seq",
  );
  const at = (seq: number) =>
    (holding.get(seq) ?? carried.get(seq)) as unknown as Stored | undefined;

  function find(first: unknown, attempt: string, kind: LedgerRow["kind"]): number | undefined {
    const stored = at(Number(first));
    const i = stored
      ? rowsOf(stored).findIndex((row) => row.attempt === attempt && row.kind === kind)
      : -1;
    return i < 0 ? undefined : stored!.first + i;
  }

  return {
    holding: at,
    row(seq) {
      const stored = at(seq);
      return stored && rowsOf(stored)[seq - stored.first];
    },
    about(attempt) {
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
