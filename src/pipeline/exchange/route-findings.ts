import type { ErrorKind } from "../../model/error.ts";
import type { Exclusion } from "../../plugin/middleware.ts";
import type { HostCandidate } from "./mounted.ts";
import type { Resolution } from "../routing/resolution.ts";

/**
 * A candidate that was excluded. `by`: the ID of the middleware that excluded it, or the host's
 * reason.
 */
export type ExcludedCandidate = Exclusion & { by: string };

/** Results of routing. They are filled in even if the request is rejected. */
export interface RouteFindings {
  resolution: Resolution | undefined;
  readonly excluded: ExcludedCandidate[];
  /** Candidates that are tried last, with the reason. */
  coolingDown:
    | readonly { readonly candidate: HostCandidate; readonly reason: ErrorKind }[]
    | undefined;
}
