// What resolving a name takes, and what it comes to.
import type { Catalog } from "../../catalog/catalog.ts";
import type { HedgeDelays } from "../../model/hedge.ts";
import type { ModelRoute } from "../../config/gateway-config.ts";
import type { ErrorKind } from "../../model/error.ts";
import type { Operation } from "../../model/request.ts";
import type { RoutingStrategy } from "../../model/routing-strategy.ts";
import type { RoutingRule } from "./routing-rule.ts";
import type { HostCandidate, MountedProvider } from "../exchange/mounted.ts";
import type { TargetName } from "../targets/target-status.ts";
import type { UpstreamTarget } from "../targets/upstream-target.ts";

export interface Resolution {
  /** The name or pattern under `models:` that was found. */
  readonly alias: string | undefined;
  readonly candidates: readonly HostCandidate[];
  /** After which failures the next candidate is tried. */
  readonly failoverOn: ReadonlySet<ErrorKind>;
  /** Why a candidate is not on passthrough mode. */
  readonly translationReasons: ReadonlyMap<HostCandidate, string>;
  /** Undefined: hedging is off. */
  readonly hedge?: HedgeDelays | undefined;
  /** For the operator: they name variables. */
  readonly notes: readonly string[];
  readonly strategy: RoutingStrategy;
  /** Undefined: they are always asked in one order. */
  readonly routingRule: RoutingRule | undefined;
}

export interface ResolverInputs {
  readonly providers: ReadonlyMap<string, MountedProvider>;
  readonly unmounted: ReadonlyMap<string, string>;
  readonly models: ReadonlyMap<string, ModelRoute>;
  readonly catalog: Catalog;
  /** Where each kind of model is asked for: "/v1/images/generations". */
  readonly pathsByOperation: ReadonlyMap<Operation, string>;
  readonly targetHealth: { target(name: TargetName): UpstreamTarget };
  readonly now: () => number;
}

/** Whether this client may use this name, or this id. */
export type IsNameAllowed = (name: string) => boolean;

/** What a name leads to. */
export interface NameLookup {
  readonly route: ModelRoute | undefined;
  /** Of candidates, mounted or not; none where the file does not know the name. */
  readonly ids: readonly string[];
  readonly unmounted: readonly {
    readonly id: string;
    readonly provider: string;
    readonly reason: string;
  }[];
  readonly candidates: HostCandidate[];
  readonly translationReasons: Map<HostCandidate, string>;
  /** Models that are listed and are asked for elsewhere. */
  readonly wrongOperation: { readonly id: string; readonly operation: Operation }[];
  readonly unserved: string[];
}
