import type { HostCandidate } from "./mounted.ts";
import type { CallReason } from "../targets/target-status.ts";

/** One candidate's turn in a request. */
export interface ScheduledAttempt {
  readonly candidate: HostCandidate;
  readonly reason: CallReason;
  /** Before it is asked. */
  readonly waitMs: number;
  /** On a connection of its own, for which the name is looked up again. */
  readonly usesNewConnection: boolean;
  /** Without what only another account can read. */
  readonly omitsAccountBound?: true;
  /** Made beside a call that stayed without content. */
  readonly isHedge?: true;
  /** When the first call of the request was begun; undefined: this is it. */
  readonly firstCallAt: number | undefined;
}
