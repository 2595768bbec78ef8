import type { Fault } from "../model/error.ts";
import type { FinishReason } from "../model/event.ts";
import type { Lane } from "../model/facts.ts";
import type { Opt } from "../model/values.ts";
import type { CallRecord } from "./call.ts";

/**
 * How a request ended. Told once to every `settle` hook, when the client has its answer and the last ledger row is durable;
 * where the ledger takes longer than 2 s for that row, the hooks are not kept waiting either.
 */
export type Outcome = Readonly<{
  status: number;
  lane: Lane | null;
  calls: readonly CallRecord[];
  cached: boolean;
  finish?: Opt<FinishReason>;
  fault?: Opt<Fault>;
  losses: readonly { field: string; how: string; code: string }[];
  bytesOut: number;
  ms: number;
}>;
