// What a gateway and the one that takes its place say to each other, beside what a worker says to its primary.
import type { Told, WorkerCommands } from "../workers/commands.ts";

/** The environment of a gateway that is to take the place of the process with this number. */
export const SUCCEEDS = "TOLLGATE_SUCCEEDS";

/** What the new one needs of the old one, which has let go of it then. */
export interface Estate {
  /** As its calls are known to the store; undefined: the store is open to both. */
  readonly instance: string | undefined;
  /** Its oldest call that is open began no earlier. */
  readonly since: number;
  /** Unix sockets that it opened by itself, and whose names the last one takes away. */
  readonly sockets: readonly string[];
}

/** What the new one asks. */
export type SuccessorAsks = {
  /** Everything but the store has been tried: it may be let go of. */
  take(wanted: { readonly stateDir: string; readonly version: string }): Promise<Estate>;
  /** The store is open there: the old one asks it from now on. */
  holding(): void;
  /** It serves clients: the old one leaves. */
  serving(): void;
  /** How many requests are under way there still. */
  busy(): number;
} & Pick<WorkerCommands, Told>;
