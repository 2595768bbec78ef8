import type { ErrorKind } from "../../model/error.ts";
import type { Exclusion } from "../../plugin/middleware.ts";
import type { HostCandidate } from "../mounted.ts";
import type { Resolution } from "./resolution.ts";

/** `by`: a middleware's id, or what the host left it out for. */
export type LeftOut = Exclusion & { by: string };

/** What routing finds on its way. It is there for a request that is refused, too. */
export interface RouteFindings {
  resolution: Resolution | undefined;
  readonly out: LeftOut[];
  /** Those that are tried last, and why. */
  rested: readonly { readonly candidate: HostCandidate; readonly why: ErrorKind }[] | undefined;
}
