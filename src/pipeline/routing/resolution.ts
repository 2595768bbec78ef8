// Types of routing: the resolution of a model name, and the routing result of one request.
import type { Catalog } from "../../catalog/catalog.ts";
import type { HedgeDelays, RoutingStrategy } from "../../model/route-settings.ts";
import type { ModelRoute } from "../../config/gateway-config.ts";
import type { ErrorKind } from "../../model/error.ts";
import type { Operation } from "../../model/request.ts";
import type { Exclusion } from "../../plugin/middleware.ts";
import type { RoutingRule } from "./routing-rules.ts";
import type { HostCandidate, MountedProvider } from "../exchange/mounted.ts";
import type { TargetName } from "../targets/target-status.ts";
import type { UpstreamTarget } from "../targets/upstream-target.ts";

export interface Resolution {
  /** The name or pattern under `models:` that matched. */
  readonly alias: string | undefined;
  readonly candidates: readonly HostCandidate[];
  /** Error kinds after which the next candidate is tried. */
  readonly failoverOn: ReadonlySet<ErrorKind>;
  /** Reason why a candidate is not in passthrough mode. */
  readonly translationReasons: ReadonlyMap<HostCandidate, string>;
  /** Undefined if hedging is off. */
  readonly hedge?: HedgeDelays | undefined;
  /** Notes for operators only, because they contain names of environment variables. */
  readonly notes: readonly string[];
  readonly strategy: RoutingStrategy;
  /** Undefined if the candidates are always tried in the same order. */
  readonly routingRule: RoutingRule | undefined;
}

export interface ResolverInputs {
  readonly providers: ReadonlyMap<string, MountedProvider>;
  readonly unmounted: ReadonlyMap<string, string>;
  readonly models: ReadonlyMap<string, ModelRoute>;
  readonly catalog: Catalog;
  /** Path for each operation, such as "/v1/images/generations". */
  readonly pathsByOperation: ReadonlyMap<Operation, string>;
  readonly targetHealth: { target(name: TargetName): UpstreamTarget };
  readonly now: () => number;
}

/** Whether this client may use this model name or ID. */
export type IsNameAllowed = (name: string) => boolean;

/** The result of looking up a name. */
export interface NameLookup {
  readonly route: ModelRoute | undefined;
  /** IDs of all candidates, mounted or not. Empty if gateway.yaml does not contain the name. */
  readonly ids: readonly string[];
  readonly unmounted: readonly {
    readonly id: string;
    readonly provider: string;
    readonly reason: string;
  }[];
  readonly candidates: HostCandidate[];
  readonly translationReasons: Map<HostCandidate, string>;
  /** Listed models that need another operation. */
  readonly wrongOperation: { readonly id: string; readonly operation: Operation }[];
  readonly unserved: string[];
}

/**
 * A candidate that was excluded. `by`: the ID of the middleware that excluded it, or the host's
 * reason.
 */
export type ExcludedCandidate = Exclusion & { by: string };

/** Result of routing one request. It is also set if the request is rejected. */
export interface RoutingState {
  resolution: Resolution | undefined;
  readonly excluded: ExcludedCandidate[];
  /** Candidates that are tried last, with the reason. */
  coolingDown:
    | readonly { readonly candidate: HostCandidate; readonly reason: ErrorKind }[]
    | undefined;
}
