// What a gateway and the one that takes its place say to each other, beside what a worker says to its primary.
import type { BroadcastName, WorkerCommands } from "../../runtime/workers/worker-protocol.ts";

/** The environment of a gateway that is to take the place of the process with this number. */
export const REPLACES_PID_VARIABLE = "TOLLGATE_REPLACES_PID";

/** What the new one needs of the old one, which has let go of it then. */
export interface HandedOverState {
  /** As its calls are known to the store; undefined: the store is open to both. */
  readonly instanceId: string | undefined;
  /** Its oldest call that is open began no earlier. */
  readonly oldestOpenCallAt: number;
  /** Unix sockets that it opened by itself, and whose names the last one takes away. */
  readonly ownedSocketPaths: readonly string[];
}

/** What the new one asks. */
export type NewProcessCalls = {
  /** Everything but the store has been tried: it may be let go of. */
  takeStore(wanted: {
    readonly stateDir: string;
    readonly version: string;
  }): Promise<HandedOverState>;
  /** The store is open there: the old one asks it from now on. */
  storeOpened(): void;
  /** It serves clients: the old one leaves. */
  serving(): void;
  /** How many requests are under way there still. */
  inFlight(): number;
} & Pick<WorkerCommands, BroadcastName>;
