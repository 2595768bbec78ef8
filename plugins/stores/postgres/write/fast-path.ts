// The plain way: one call of the gate for a whole batch, and behind it, in the same write, the flush. Locks are given back before the disk works,
// and the answer is believed after both.
import type { StoreCommand, CommandResult } from "tollgate/plugin";
import type { OwnCall, BatchPlan, MeterDelta } from "../rows/batch-plan.ts";
import { awaitAll } from "../connection/await-all.ts";
import { APPLY_BATCH_ARGUMENTS } from "../schema/apply-batch.ts";
import type { RunSql } from "../connection/pipelined-connection.ts";
import { numberArray, textArray } from "../connection/array-literal.ts";
import { replayResults } from "./result-replay.ts";
import { hashBatch } from "../rows/row-codec.ts";
import { LEASED_ARGUMENTS } from "../schema/budget-lease-sql.ts";
import { rowArrays, plannedRowLine, encodeTerms, type TermsCache } from "../rows/call-terms.ts";

/** synced: a plain commit. flushed: the same promise, with locks given back before the flush. relaxed: no flush. */
export type Durability = "synced" | "flushed" | "relaxed";

export interface FastPathSettings {
  readonly schema: string;
  readonly durability: Durability;
  /** Whether statements may have names: not behind a pooler, which gives each transaction another connection. */
  readonly usesPreparedStatements: boolean;
}

/** What the gate has said of a batch that it has looked at. */
export type ApplyResult =
  | {
      readonly status: "ok" | "full";
      readonly versions: string;
      readonly databaseTime: number;
      readonly states: readonly string[];
    }
  | { readonly status: "done" | "look"; readonly versions: string; readonly databaseTime: number }
  | ApplyMiss;

/** It was not this node's turn: it was taken for dead, or its number is another one. */
export interface ApplyMiss {
  readonly status: "fenced" | "behind";
}

const FLUSH_SQL =
  "SELECT concat(set_config('synchronous_commit', 'on', true), pg_logical_emit_message(true, '', ''))";

const argumentCasts = (all: readonly (readonly [name: string, type: string])[]) =>
  all.map(([, type], i) => `$${i + 1}::${type}`).join(", ");
const APPLY_CASTS = argumentCasts(APPLY_BATCH_ARGUMENTS);
const LEASED_CASTS = argumentCasts([...APPLY_BATCH_ARGUMENTS, ...LEASED_ARGUMENTS]);

/** The hash that the batch would have. */
export const batchHash = ({ rows }: BatchPlan, head: Uint8Array): Buffer =>
  hashBatch(head, rows.map(plannedRowLine));

/** `at`: the moment that counts, where it is not the database's. `sliced`: what is counted in this node's slices. */
export async function callApplyBatch(
  sql: RunSql,
  { schema, durability, usesPreparedStatements }: FastPathSettings,
  plan: BatchPlan,
  position: {
    readonly epoch: number;
    readonly n: number;
    readonly hash: Buffer;
    readonly at: number | null;
    /** That there is room. */
    readonly sure: boolean;
    readonly terms: TermsCache;
  },
  leased: readonly MeterDelta[] = [],
): Promise<ApplyResult> {
  const { meterDeltas, closedAttempts, progress, rows } = plan;
  const { fresh, known } = position.terms.partition(rows);
  const [gate, casts] =
    leased.length > 0 ? ["apply_leased_batch_1", LEASED_CASTS] : ["apply_batch_1", APPLY_CASTS];
  const text = `SELECT ${schema}.${gate}(${casts}) AS said`;
  const values = [
    position.epoch,
    position.n,
    position.hash,
    position.at,
    String(durability !== "synced"),
    String(position.sure),
    textArray(meterDeltas.map(({ id }) => id)),
    numberArray(meterDeltas.map(({ max }) => max)),
    numberArray(meterDeltas.map(({ period }) => period)),
    numberArray(meterDeltas.map(({ take }) => take)),
    numberArray(meterDeltas.map(({ released }) => released)),
    numberArray(meterDeltas.map((sum) => sum.used)),
    numberArray(meterDeltas.map(({ required }) => required)),
    textArray(closedAttempts),
    textArray(progress.map(({ attempt }) => attempt)),
    textArray(progress.map(({ usage }) => JSON.stringify(usage))),
    numberArray(progress.map(({ costNano }) => costNano ?? null)),
    numberArray(known),
    fresh.length === 0 ? "" : encodeTerms(fresh),
    ...rowArrays(rows),
  ];
  if (leased.length > 0)
    values.push(
      textArray(leased.map(({ id }) => id)),
      numberArray(leased.map(({ required }) => required ?? 0n)),
      numberArray(leased.map(({ running }) => running)),
      numberArray(leased.map((sum) => sum.used)),
    );
  const asked = [sql({ text, values, ...(usesPreparedStatements && { name: gate }) })];
  if (durability === "flushed")
    asked.push(sql({ text: FLUSH_SQL, ...(usesPreparedStatements && { name: "flush" }) }));
  const [answer] = await awaitAll(asked);
  const [how, versions, t, ...states] = answer![0]!["said"]!.split(";") as [
    ApplyResult["status"],
    string,
    string,
    ...string[],
  ];
  if (how === "fenced" || how === "behind") return { status: how };
  return { status: how, versions, databaseTime: Number(t), states } as ApplyResult;
}

const ALLOWED: CommandResult = { ok: true };

/** Of the whole batch, in its order. */
export const resultsInOrder = (
  batch: readonly StoreCommand[],
  verdicts: ReadonlyMap<string, CommandResult>,
): readonly CommandResult[] =>
  batch.map(
    (c) =>
      (c.do === "reserve" || c.do === "settle" ? verdicts.get(c.attempt) : undefined) ?? ALLOWED,
  );

/** What the book says of an answer: all that was let through, or those that are refused. */
export function resultsFromStates(
  plan: BatchPlan,
  result: Extract<ApplyResult, { states: readonly string[] }>,
): ReadonlyMap<string, CommandResult> {
  const verdicts = new Map(replayResults(plan, result.states, result.databaseTime));
  // What was let through is let through: its rows are written.
  if (result.status === "ok")
    for (const [attempt, verdict] of verdicts) if (!verdict.ok) verdicts.set(attempt, ALLOWED);
  return verdicts;
}

/** What this node remembers from now on. */
export function rememberBatch(
  { openedRows, closedAttempts, rows }: BatchPlan,
  mine: Map<string, OwnCall>,
  terms: TermsCache,
): void {
  terms.markStored(rows);
  for (const attempt of closedAttempts) mine.delete(attempt);
  for (const row of openedRows) mine.set(row.attempt, { row });
}
