// Applies a batch on the fast path in rounds. Calls that do not fit are denied, and the rest is
// submitted again.
import type { StoreCommand, CommandResult } from "tollgate/plugin";
import { haveSameTime, planBatch, type BatchPlan } from "../rows/batch-plan.ts";
import type { RunSql } from "../connection/pipelined-connection.ts";
import { submitBatch, type SubmitContext } from "./batch-submit.ts";
import { resultsInOrder, resultsFromStates, type ApplyResult } from "./fast-path.ts";

/** Maximum number of rounds before the batch is decided under locks. */
const MAX_ROUNDS = 8;
/** Other nodes return recalled leases within about this time, in milliseconds. */
const LEASE_RETURN_MS = 1_000;

/** Applies a batch. Returns undefined if it must take the slow path. */
export async function applyFastPath(
  sql: RunSql,
  context: SubmitContext,
  batch: readonly StoreCommand[],
): Promise<readonly CommandResult[] | undefined> {
  const { connection, node, budgetLeases, denialCache, fullGroups } = context;
  const of = { made: connection.connectionCount, at: context.limitTime(0) };
  const deniedResults =
    denialCache?.denyFromCache(batch, node.openCalls, of) ?? new Map<string, CommandResult>();
  await fullGroups?.denyNewMembers(batch, deniedResults, {
    ...of,
    sql,
    schema: context.settings.schema,
    openCalls: node.openCalls,
    known: node.members,
  });
  let batchPlan = planRemaining(context, batch, deniedResults);
  for (let round = 0; batchPlan && round < MAX_ROUNDS; round++) {
    if (batchPlan.steps.length + batchPlan.progress.length === 0)
      return resultsInOrder(batch, deniedResults);
    const result: ApplyResult | undefined = await submitBatch(sql, context, batchPlan, batch);
    if (!result || result.status === "look") return undefined;
    if (result.status === "done") return resultsInOrder(batch, deniedResults);
    if (!("states" in result)) return undefined;
    const verdicts = resultsFromStates(batchPlan, result);
    if (result.status === "ok") {
      budgetLeases?.recordUse(batchPlan.meterDeltas);
      denialCache?.onApplied(batchPlan);
      for (const row of batchPlan.openedRows) node.members.record(row.meterAmounts);
      return resultsInOrder(batch, new Map([...verdicts, ...deniedResults]));
    }
    const denied = batchPlan.steps.filter(
      ({ command }) => verdicts.get(command.attempt)?.ok === false,
    );
    if (denied.length === 0) return undefined;
    const ids = new Set(denied.flatMap(({ meterAmounts }) => meterAmounts.map(([id]) => id)));
    // Recall leases on budgets that denied calls.
    const leaseChange = await budgetLeases?.onDenied(sql, node.requirePosition().instance, [
      ...ids,
    ]);
    // This node has returned its leases, so the meter now has more available.
    if (leaseChange === "own") continue;
    for (const step of denied) {
      const verdict = verdicts.get(step.command.attempt)!;
      deniedResults.set(step.command.attempt, leaseChange ? withEarlierRetry(verdict) : verdict);
      if (!leaseChange) denialCache?.add(step, verdict, result.databaseTime);
    }
    batchPlan = planRemaining(context, batch, deniedResults);
  }
  return undefined;
}

function planRemaining(
  { settings: { clock }, node, limitTime }: SubmitContext,
  batch: readonly StoreCommand[],
  refused: ReadonlyMap<string, CommandResult>,
): BatchPlan | undefined {
  if (clock === "command" && !haveSameTime(batch)) return undefined;
  const remaining =
    refused.size === 0 ? batch : batch.filter((c) => !("attempt" in c && refused.has(c.attempt)));
  return planBatch(
    remaining,
    node.openCalls,
    node.requirePosition().instance,
    limitTime,
    node.terms,
    node.members,
  );
}

const withEarlierRetry = (verdict: CommandResult): CommandResult =>
  verdict.ok
    ? verdict
    : { ...verdict, retryAfterMs: Math.min(verdict.retryAfterMs, LEASE_RETURN_MS) };
