// The plain way: one call of the gate for a whole batch, and behind it, in the same write, the flush. Locks are given back before the disk works,
// and the answer is believed after both.
import type { StoreCommand, Verdict } from "tollgate/plugin";
import type { Mine, Plan, Sum } from "./calls.ts";
import { all } from "./exact.ts";
import { ARGUMENTS } from "./gate.ts";
import type { Ask } from "./line.ts";
import { numbers, texts } from "./literal.ts";
import { verdictsOf } from "./replay.ts";
import { hashOf } from "./rows.ts";
import { SLICED } from "./slicing.ts";
import { bookedArrays, bookedLine, termsText, type KnownTerms } from "./terms.ts";

/** synced: a plain commit. flushed: the same promise, with locks given back before the flush. relaxed: no flush. */
export type Durability = "synced" | "flushed" | "relaxed";

export interface Gate {
  readonly schema: string;
  readonly durability: Durability;
  /** Whether statements may have names: not behind a pooler, which gives each transaction another connection. */
  readonly named: boolean;
}

/** What the gate has said of a batch that it has looked at. */
export type Said =
  | {
      readonly how: "ok" | "full";
      readonly versions: string;
      readonly t: number;
      readonly states: readonly string[];
    }
  | { readonly how: "done" | "look"; readonly versions: string; readonly t: number }
  | Missed;

/** It was not this node's turn: it was taken for dead, or its number is another one. */
export interface Missed {
  readonly how: "fenced" | "behind";
}

const FLUSH =
  "SELECT concat(set_config('synchronous_commit', 'on', true), pg_logical_emit_message(true, '', ''))";

const castsOf = (all: readonly (readonly [name: string, type: string])[]) =>
  all.map(([, type], i) => `$${i + 1}::${type}`).join(", ");
const CASTS = castsOf(ARGUMENTS);
const SLICED_CASTS = castsOf([...ARGUMENTS, ...SLICED]);

/** The hash that the batch would have. */
export const linkOf = ({ rows }: Plan, head: Uint8Array): Buffer =>
  hashOf(head, rows.map(bookedLine));

/** `at`: the moment that counts, where it is not the database's. `sliced`: what is counted in this node's slices. */
export async function pass(
  ask: Ask,
  { schema, durability, named }: Gate,
  of: Plan,
  me: {
    readonly epoch: number;
    readonly n: number;
    readonly hash: Buffer;
    readonly at: number | null;
    /** That there is room. */
    readonly sure: boolean;
    readonly terms: KnownTerms;
  },
  sliced: readonly Sum[] = [],
): Promise<Said> {
  const { sums, closed, heard, rows } = of;
  const { fresh, known } = me.terms.sort(rows);
  const [gate, casts] = sliced.length > 0 ? ["apply_sliced_1", SLICED_CASTS] : ["apply_1", CASTS];
  const text = `SELECT ${schema}.${gate}(${casts}) AS said`;
  const values = [
    me.epoch,
    me.n,
    me.hash,
    me.at,
    String(durability !== "synced"),
    String(me.sure),
    texts(sums.map(({ id }) => id)),
    numbers(sums.map(({ max }) => max)),
    numbers(sums.map(({ period }) => period)),
    numbers(sums.map(({ take }) => take)),
    numbers(sums.map(({ unhold }) => unhold)),
    numbers(sums.map((sum) => sum.used)),
    numbers(sums.map(({ need }) => need)),
    texts(closed),
    texts(heard.map(({ attempt }) => attempt)),
    texts(heard.map(({ usage }) => JSON.stringify(usage))),
    numbers(heard.map(({ costNano }) => costNano ?? null)),
    numbers(known),
    fresh.length === 0 ? "" : termsText(fresh),
    ...bookedArrays(rows),
  ];
  if (sliced.length > 0)
    values.push(
      texts(sliced.map(({ id }) => id)),
      numbers(sliced.map(({ need }) => need ?? 0n)),
      numbers(sliced.map(({ run }) => run)),
      numbers(sliced.map((sum) => sum.used)),
    );
  const asked = [ask({ text, values, ...(named && { name: gate }) })];
  if (durability === "flushed") asked.push(ask({ text: FLUSH, ...(named && { name: "flush" }) }));
  const [answer] = await all(asked);
  const [how, versions, t, ...states] = answer![0]!["said"]!.split(";") as [
    Said["how"],
    string,
    string,
    ...string[],
  ];
  if (how === "fenced" || how === "behind") return { how };
  return { how, versions, t: Number(t), states } as Said;
}

const OK: Verdict = { ok: true };

/** Of the whole batch, in its order. */
export const inOrder = (
  batch: readonly StoreCommand[],
  verdicts: ReadonlyMap<string, Verdict>,
): readonly Verdict[] =>
  batch.map(
    (c) => (c.do === "reserve" || c.do === "settle" ? verdicts.get(c.attempt) : undefined) ?? OK,
  );

/** What the book says of an answer: all that was let through, or those that are refused. */
export function judged(
  of: Plan,
  said: Extract<Said, { states: readonly string[] }>,
): ReadonlyMap<string, Verdict> {
  const verdicts = new Map(verdictsOf(of, said.states, said.t));
  // What was let through is let through: its rows are written.
  if (said.how === "ok")
    for (const [attempt, verdict] of verdicts) if (!verdict.ok) verdicts.set(attempt, OK);
  return verdicts;
}

/** What this node remembers from now on. */
export function remember(
  { begun, closed, rows }: Plan,
  mine: Map<string, Mine>,
  terms: KnownTerms,
): void {
  terms.wrote(rows);
  for (const attempt of closed) mine.delete(attempt);
  for (const row of begun) mine.set(row.attempt, { row });
}
