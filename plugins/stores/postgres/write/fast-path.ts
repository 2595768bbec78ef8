// The fast path: one call of the admission function per batch, followed by the flush in the same
// write. Locks are released before the data is flushed to disk. The result is used after both have
// succeeded.
import type { StoreCommand, CommandResult } from "tollgate/plugin";
import { hashBatch } from "tollgate/store";
import type { OwnCall, BatchPlan, MeterDelta } from "../rows/batch-plan.ts";
import { awaitAll } from "../connection/await-all.ts";
import { APPLY_BATCH_ARGUMENTS } from "../schema/apply-batch.ts";
import type { RunSql } from "../connection/pipelined-connection.ts";
import { numberArray, textArray } from "../connection/array-literal.ts";
import { replayResults } from "./result-replay.ts";
import { LEASED_ARGUMENTS } from "../schema/budget-lease-sql.ts";
import { rowArrays, plannedRowLine, encodeTerms, type TermsCache } from "../rows/call-terms.ts";

/**
 * `synced`: a normal commit. `flushed`: the same guarantee, but locks are released before the
 * flush. `relaxed`: no flush.
 */
export type Durability = "synced" | "flushed" | "relaxed";

export interface FastPathSettings {
  readonly schema: string;
  readonly durability: Durability;
  /**
   * Whether statements are prepared by name. False behind a pooler, because a pooler may use
   * another connection for each transaction.
   */
  readonly usesPreparedStatements: boolean;
}

/** The result of the admission function. */
export type ApplyResult =
  | {
      readonly status: "ok" | "full";
      readonly versions: string;
      readonly databaseTime: number;
      readonly states: readonly string[];
    }
  | { readonly status: "done" | "look"; readonly versions: string; readonly databaseTime: number }
  | ApplyMiss;

/** The batch was not applied because the node's lease has expired or its batch number differs. */
export interface ApplyMiss {
  readonly status: "fenced" | "behind";
}

const FLUSH_SQL =
  "SELECT concat(set_config('synchronous_commit', 'on', true), pg_logical_emit_message(true, '', ''))";

const argumentCasts = (all: readonly (readonly [name: string, type: string])[]) =>
  all.map(([, type], i) => `$${i + 1}::${type}`).join(", ");
const APPLY_CASTS = argumentCasts(APPLY_BATCH_ARGUMENTS);
const LEASED_CASTS = argumentCasts([...APPLY_BATCH_ARGUMENTS, ...LEASED_ARGUMENTS]);

/** Returns the chain hash that the batch will have. */
export const batchHash = ({ rows }: BatchPlan, head: Uint8Array): Buffer =>
  hashBatch(head, rows.map(plannedRowLine));

/**
 * Calls the admission function. `at` overrides the database time. `leased` contains the amounts
 * taken from this node's leases.
 */
export async function callApplyBatch(
  sql: RunSql,
  { schema, durability, usesPreparedStatements }: FastPathSettings,
  plan: BatchPlan,
  position: {
    readonly epoch: number;
    readonly n: number;
    readonly hash: Buffer;
    readonly at: number | null;
    /** Whether the node knows that the amounts fit, so that the check without locks is skipped. */
    readonly sure: boolean;
    readonly terms: TermsCache;
  },
  leased: readonly MeterDelta[] = [],
): Promise<ApplyResult> {
  const { meterDeltas, closedAttempts, progress, rows } = plan;
  const { fresh, known } = position.terms.partition(rows);
  const [gate, casts] =
    leased.length > 0 ? ["apply_leased_batch_1", LEASED_CASTS] : ["apply_batch_1", APPLY_CASTS];
  const text = `SELECT ${schema}.${gate}(${casts}) AS result`;
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
    numberArray(meterDeltas.map(({ idle }) => idle)),
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
  const pending = [sql({ text, values, ...(usesPreparedStatements && { name: gate }) })];
  if (durability === "flushed")
    pending.push(sql({ text: FLUSH_SQL, ...(usesPreparedStatements && { name: "flush" }) }));
  const [answer] = await awaitAll(pending);
  const [how, versions, t, ...states] = answer![0]!["result"]!.split(";") as [
    ApplyResult["status"],
    string,
    string,
    ...string[],
  ];
  if (how === "fenced" || how === "behind") return { status: how };
  return { status: how, versions, databaseTime: Number(t), states } as ApplyResult;
}

const ALLOWED: CommandResult = { ok: true };

/** Returns the results of the whole batch, in order. */
export const resultsInOrder = (
  batch: readonly StoreCommand[],
  verdicts: ReadonlyMap<string, CommandResult>,
): readonly CommandResult[] =>
  batch.map(
    (c) =>
      (c.do === "reserve" || c.do === "settle" ? verdicts.get(c.attempt) : undefined) ?? ALLOWED,
  );

/**
 * Computes results from the returned meter states. If the batch was accepted, all calls are
 * allowed. Otherwise, the states show which calls are denied.
 */
export function resultsFromStates(
  plan: BatchPlan,
  result: Extract<ApplyResult, { states: readonly string[] }>,
): ReadonlyMap<string, CommandResult> {
  const verdicts = new Map(replayResults(plan, result.states, result.databaseTime));
  // The batch was accepted and its rows are written, so no call in it can be denied.
  if (result.status === "ok")
    for (const [attempt, verdict] of verdicts) if (!verdict.ok) verdicts.set(attempt, ALLOWED);
  return verdicts;
}

/** Updates this node's open calls and terms after a batch. */
export function rememberBatch(
  { openedRows, closedAttempts, rows }: BatchPlan,
  mine: Map<string, OwnCall>,
  terms: TermsCache,
): void {
  terms.markStored(rows);
  for (const attempt of closedAttempts) mine.delete(attempt);
  for (const row of openedRows) mine.set(row.attempt, { row });
}
