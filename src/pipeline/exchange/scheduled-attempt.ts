import type { HostCandidate } from "./mounted.ts";
import type { CallReason } from "../targets/target-status.ts";

/** One scheduled attempt of a request at one candidate. */
export interface ScheduledAttempt {
  readonly candidate: HostCandidate;
  readonly reason: CallReason;
  /** Delay before the attempt, in milliseconds. */
  readonly waitMs: number;
  /** Whether the attempt uses a new connection, for which the host name is resolved again. */
  readonly usesNewConnection: boolean;
  /** Whether content is omitted that only another account can read. */
  readonly omitsAccountBound?: true;
  /**
   * Whether the attempt is a hedge: it is started because another call has not returned content.
   */
  readonly isHedge?: true;
  /** When the first call of the request began. Undefined if this is the first call. */
  readonly firstCallAt: number | undefined;
}
