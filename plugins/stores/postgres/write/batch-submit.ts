// Submits a batch to the admission function, partly against budget leases, and updates this node's
// state for every possible result.
import type { StoreCommand } from "tollgate/plugin";
import type { HeadroomCache } from "./headroom-cache.ts";
import type { BatchPlan } from "../rows/batch-plan.ts";
import type { DenialCache } from "./denial-cache.ts";
import type { FullGroups } from "./full-groups.ts";
import type { RunSql, PipelinedConnection } from "../connection/pipelined-connection.ts";
import {
  batchHash,
  callApplyBatch,
  rememberBatch,
  type ApplyMiss,
  type ApplyResult,
} from "./fast-path.ts";
import type { BudgetLeases, LeaseSplit } from "../leases/budget-leases.ts";
import type { LocalNode } from "../local-node.ts";
import { failFenced, isUnavailable, needsReread, isLeaseMissing } from "../connection/errors.ts";
import type { WriterSettings } from "../writer-interface.ts";

export interface SubmitContext {
  readonly connection: PipelinedConnection;
  readonly settings: WriterSettings;
  readonly node: LocalNode;
  readonly budgetLeases: BudgetLeases | undefined;
  readonly denialCache: DenialCache | undefined;
  readonly fullGroups: FullGroups | undefined;
  readonly headroomCache: HeadroomCache;
  /** Returns the time at which limits are evaluated. */
  limitTime(at: number): number;
}

/** Submits a batch. Returns undefined if the actual state must be read before. */
export async function submitBatch(
  sql: RunSql,
  {
    connection,
    settings,
    node,
    budgetLeases,
    denialCache,
    fullGroups,
    headroomCache,
  }: SubmitContext,
  plan: BatchPlan,
  batch: readonly StoreCommand[],
): Promise<Exclude<ApplyResult, ApplyMiss> | undefined> {
  const position = node.requirePosition();
  const hash = batchHash(plan, position.head);
  const at =
    settings.clock === "command" ? (batch.find((c) => c.do !== "heartbeat")?.at ?? null) : null;
  const done = () => rememberBatch(plan, node.openCalls, node.terms);
  node.pendingBatch = { head: hash, done };
  const began = performance.now();
  const split = budgetLeases?.split(plan.meterDeltas, connection.connectionCount);
  // The states before the batch, like those that the admission function returns.
  const before = new Map(split?.leased.map(({ id }) => [id, budgetLeases!.meterState(id)]));
  const confirmLeases = split && budgetLeases!.reserve(split.leased);
  try {
    const metered = split ? { ...plan, meterDeltas: split.metered } : plan;
    const hasHeadroom = headroomCache.hasHeadroom(metered.meterDeltas, connection.connectionCount);
    const link = {
      epoch: position.epoch,
      n: position.n + 1,
      hash,
      at,
      sure: hasHeadroom,
      terms: node.terms,
    };
    const result = await callApplyBatch(sql, settings, metered, link, split?.leased);
    node.pendingBatch = undefined;
    confirmLeases?.(result.status === "ok");
    if (!("versions" in result)) {
      if (result.status === "fenced") return failFenced();
      await node.syncPosition(sql);
      return undefined;
    }
    node.observe(result, performance.now() - began);
    if (result.status === "ok" || result.status === "done") {
      Object.assign(node.position!, { n: position.n + 1, head: hash });
      done();
      if (result.status === "ok") headroomCache.update(metered.meterDeltas, result.states);
    }
    return split && "states" in result ? mergeLeasedStates(result, plan, split, before) : result;
  } catch (error) {
    // The result is unknown until the state is read again. The cache is cleared, because it could
    // deny a call that was accepted.
    denialCache?.clear();
    fullGroups?.clear();
    headroomCache.clear();
    if (!isUnavailable(error)) {
      node.pendingBatch = undefined;
      confirmLeases?.(false);
    }
    if (needsReread(error)) node.terms.invalidate();
    else if (isLeaseMissing(error)) budgetLeases!.invalidate();
    else throw error;
    return undefined;
  }
}

/**
 * Returns a state for each meter, including leased meters that the admission function did not
 * receive.
 */
function mergeLeasedStates(
  result: Extract<ApplyResult, { states: readonly string[] }>,
  { meterDeltas }: BatchPlan,
  { metered }: LeaseSplit,
  sliced: ReadonlyMap<string, string>,
): typeof result {
  const states = new Map(metered.map(({ id }, i) => [id, result.states[i]!]));
  for (const [id, state] of sliced) states.set(id, state);
  return { ...result, states: meterDeltas.map(({ id }) => states.get(id)!) };
}
