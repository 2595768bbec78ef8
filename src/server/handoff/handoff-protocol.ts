// Messages between a gateway and the process that replaces it, in addition to those between a
// worker and its primary.
import type { BroadcastName, WorkerCommands } from "../../runtime/workers/worker-protocol.ts";

/** Environment variable with the process id of the gateway to replace. */
export const REPLACES_PID_VARIABLE = "TOLLGATE_REPLACES_PID";

/** State that the old process hands over after it has released it. */
export interface HandedOverState {
  /** Instance id of the old process in the store. Undefined: both processes have the store open. */
  readonly instanceId: string | undefined;
  /** Unix milliseconds. No open call of the old process began earlier. */
  readonly oldestOpenCallAt: number;
  /** Unix sockets that the old process opened itself. The last process removes them. */
  readonly ownedSocketPaths: readonly string[];
}

/** Calls from the new process to the old one. */
export type NewProcessCalls = {
  /** Requests the store. Everything else has been tested by then. */
  takeStore(wanted: {
    readonly stateDir: string;
    readonly version: string;
  }): Promise<HandedOverState>;
  /**
   * Reports that the new process has opened the store. The old process then uses the store through
   * the new one.
   */
  storeOpened(): void;
  /** Reports that the new process serves clients. The old process then shuts down. */
  serving(): void;
  /** Returns the number of open requests in the old process. */
  inFlight(): number;
} & Pick<WorkerCommands, BroadcastName>;
