import type { ErrorKind } from "../../model/error.ts";
import type { Exclusion } from "../../plugin/middleware.ts";
import type { HostCandidate } from "./mounted.ts";
import type { Resolution } from "../routing/resolution.ts";

/** `by`: a middleware's id, or what the host left it out for. */
export type ExcludedCandidate = Exclusion & { by: string };

/** What routing finds on its way. It is there for a request that is refused, too. */
export interface RouteFindings {
  resolution: Resolution | undefined;
  readonly excluded: ExcludedCandidate[];
  /** Those that are tried last, and why. */
  coolingDown:
    | readonly { readonly candidate: HostCandidate; readonly reason: ErrorKind }[]
    | undefined;
}
