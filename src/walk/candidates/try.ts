import type { HostCandidate } from "../mounted.ts";
import type { Pass } from "../targets/target-rest.ts";

/** One candidate's turn in a request. */
export interface Try {
  readonly candidate: HostCandidate;
  readonly pass: Pass;
  /** Before it is asked. */
  readonly waitMs: number;
  /** On a connection of its own, for which the name is looked up again. */
  readonly fresh: boolean;
  /** Without what only another account can read. */
  readonly unbound?: true;
  /** Made beside a call that stayed without content. */
  readonly hedge?: true;
  /** When the first call of the request was begun; undefined: this is it. */
  readonly began: number | undefined;
}
