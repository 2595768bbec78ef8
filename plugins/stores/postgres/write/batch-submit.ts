// A batch through the gate, part of it from slices; and what is known of this node after it, whatever came back.
import type { StoreCommand } from "tollgate/plugin";
import type { HeadroomCache } from "./headroom-cache.ts";
import type { BatchPlan } from "../rows/batch-plan.ts";
import type { DenialCache } from "./denial-cache.ts";
import type { RunSql, PipelinedConnection } from "../connection/pipelined-connection.ts";
import {
  batchHash,
  callApplyBatch,
  rememberBatch,
  type ApplyMiss,
  type ApplyResult,
} from "./fast-path.ts";
import type { BudgetLeases, LeaseSplit } from "../offline/budget-leases.ts";
import type { LocalNode } from "../local-node.ts";
import { failFenced, isUnavailable, needsReread, isLeaseMissing } from "../connection/errors.ts";
import type { WriterSettings } from "../writer-interface.ts";

export interface SubmitContext {
  readonly connection: PipelinedConnection;
  readonly settings: WriterSettings;
  readonly node: LocalNode;
  readonly budgetLeases: BudgetLeases | undefined;
  readonly denialCache: DenialCache | undefined;
  readonly headroomCache: HeadroomCache;
  /** The moment that decides. */
  limitTime(at: number): number;
}

/** Undefined: what is really there has to be read first. */
export async function submitBatch(
  sql: RunSql,
  { connection, settings, node, budgetLeases, denialCache, headroomCache }: SubmitContext,
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
  // As the gate says of meters: before what the batch takes.
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
    // What has become of it is found out: nothing is refused meanwhile that may have been let through.
    denialCache?.clear();
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

/** A state for each meter, also for those that the gate was not asked of. */
function mergeLeasedStates(
  said: Extract<ApplyResult, { states: readonly string[] }>,
  { meterDeltas }: BatchPlan,
  { metered }: LeaseSplit,
  sliced: ReadonlyMap<string, string>,
): typeof said {
  const states = new Map(metered.map(({ id }, i) => [id, said.states[i]!]));
  for (const [id, state] of sliced) states.set(id, state);
  return { ...said, states: meterDeltas.map(({ id }) => states.get(id)!) };
}
