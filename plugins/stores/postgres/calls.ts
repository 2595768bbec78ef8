// What a batch does, added up: a row a meter, a row an entry. A batch that is not plain (a repeat, a truth that comes late, a correction, a key)
// is none of this: it goes the exact way, which asks the database first what it knows.
import type { StoreCommand, Reserve, Settle } from "tollgate/plugin";
import {
  claimed,
  reserved,
  settled,
  taking,
  used,
  type LedgerRow,
  type Taken,
} from "tollgate/store";
import { inBytes } from "./literal.ts";
import type { Booked, KnownTerms } from "./terms.ts";

type At<C> = C & { readonly at: number };

/** A call that this node has opened, and remembers until it ends. */
export interface Mine {
  readonly row: LedgerRow;
}

/** What a batch takes of one meter, and gives back. */
export interface Sum {
  readonly id: string;
  /** The limit that was claimed; null: it is only given back to. */
  max: bigint | null;
  /** Of a rate, in milliseconds; 0: it is none. */
  readonly period: number;
  take: bigint;
  /** By so many calls. */
  times: number;
  unhold: bigint;
  used: bigint;
  /** What there has to be room for, told in the batch's order; null: nothing is asked of it. */
  need: bigint | null;
  /** How much more than before it is, at this point of the batch. Of a rate, without what is given back. */
  run: bigint;
}

/** A call that begins or ends, with what it takes or took. */
export interface Step {
  readonly command: At<Reserve> | At<Settle>;
  readonly taken: readonly Taken[];
}

/** A plain batch. */
export interface Plan {
  readonly sums: readonly Sum[];
  /** Its calls, in order. */
  readonly steps: readonly Step[];
  readonly closed: readonly string[];
  readonly heard: readonly Extract<StoreCommand, { do: "progress" }>[];
  readonly rows: readonly Booked[];
  /** What is remembered once it is done. */
  readonly begun: readonly LedgerRow[];
}

const PERIODS: { readonly [per: string]: number } = { minute: 60_000, hour: 3_600_000 };

/** Of a meter's name: unit|per|start|scope. */
export function kindOf(id: string): {
  unit: Reserve["claims"][number]["unit"];
  per: string;
  period: number;
} {
  const [unit, per] = id.split("|", 2) as [Reserve["claims"][number]["unit"], string];
  return { unit, per, period: PERIODS[per] ?? 0 };
}

/** Whether all calls of a batch say one moment. */
export function atOnce(batch: readonly StoreCommand[]): boolean {
  const [first, ...others] = batch.filter((c) => c.do === "reserve" || c.do === "settle");
  return others.every(({ at }) => at === first!.at);
}

/** `now`: the moment that decides which window a claim meets. Undefined: it is not plain. */
export function plan(
  batch: readonly StoreCommand[],
  mine: ReadonlyMap<string, Mine>,
  instance: string,
  now: (at: number) => number,
  terms: KnownTerms,
): Plan | undefined {
  terms.begin();
  const sums = new Map<string, Sum>();
  const steps: Step[] = [];
  const closed: string[] = [];
  const heard: Plan["heard"][number][] = [];
  const rows: Booked[] = [];
  const begun: LedgerRow[] = [];
  const seen = new Set<string>();
  const sum = (id: string): Sum => {
    let found = sums.get(id);
    if (!found) {
      const { period } = kindOf(id);
      sums.set(id, (found = empty(id, period)));
    }
    return found;
  };
  for (const c of batch) {
    if (c.do === "alive") continue;
    if (c.do !== "reserve" && c.do !== "settle" && c.do !== "progress") return undefined;
    const call = mine.get(c.attempt);
    if (c.do === "progress") {
      if (call && !seen.has(c.attempt)) heard.push(c);
      else if (seen.has(c.attempt)) return undefined;
      continue;
    }
    if (seen.has(c.attempt) || (c.do === "settle") !== (call !== undefined)) return undefined;
    seen.add(c.attempt);
    if (c.do === "reserve") {
      const claims = claimed(c.claims, now(c.at), NONE);
      const taken = claims.map(taking);
      for (let i = 0; i < claims.length; i++) {
        const { most, meter } = claims[i]!;
        const of = sum(meter.id);
        if (of.max !== null && of.max !== most) return undefined;
        of.max = most;
        takes(of, taken[i]![1]);
      }
      const row = reserved(c, instance, taken);
      steps.push({ command: c, taken });
      begun.push(row);
      rows.push(terms.book(row, row.at));
    } else {
      const { row } = call!;
      for (const [id, amount] of row.taken) {
        const { unit, per } = kindOf(id);
        gives(sum(id), amount, per === "open" ? 0n : used(unit, amount, c));
      }
      steps.push({ command: c, taken: row.taken });
      closed.push(c.attempt);
      rows.push(terms.book(settled(row, c, instance), row.at));
    }
  }
  return { sums: [...sums.values()].sort(byId), steps, closed, heard, rows, begun };
}

const empty = (id: string, period: number): Sum => ({
  id,
  max: null,
  period,
  take: 0n,
  times: 0,
  unhold: 0n,
  used: 0n,
  need: null,
  run: 0n,
});

function takes(of: Sum, amount: bigint): void {
  of.take += amount;
  of.times++;
  of.run += amount;
  if (amount > 0n && (of.need === null || of.run > of.need)) of.need = of.run;
}

function gives(of: Sum, amount: bigint, used: bigint): void {
  of.unhold += amount;
  of.used += used;
  const more = used - amount;
  // What a rate gets back counts from its empty bucket on, and where that is only its level says.
  if (of.period === 0 || more > 0n) of.run += more;
}

const NONE: ReadonlyMap<string, never> = new Map<string, never>();
/** Meters are locked in this order. */
const byId = (a: Sum, b: Sum): number => inBytes(a.id, b.id);
