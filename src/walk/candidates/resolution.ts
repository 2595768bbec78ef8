// What resolving a name takes, and what it comes to.
import type { Catalogue } from "../../catalogue/catalogue.ts";
import type { HedgeDelays } from "../../model/hedge.ts";
import type { ModelRoute } from "../../config/types.ts";
import type { ErrorKind } from "../../model/error.ts";
import type { Kind } from "../../model/request.ts";
import type { PickName } from "../../model/pick.ts";
import type { PickRule } from "../choosing/pick.ts";
import type { HostCandidate, MountedProvider } from "../mounted.ts";
import type { TargetName } from "../targets/target-rest.ts";
import type { UpstreamTarget } from "../targets/upstream-target.ts";

export interface Resolution {
  /** The name or pattern under `models:` that was found. */
  readonly alias: string | undefined;
  readonly candidates: readonly HostCandidate[];
  /** After which failures the next candidate is tried. */
  readonly on: ReadonlySet<ErrorKind>;
  /** Why a candidate is not on the verbatim lane. */
  readonly closed: ReadonlyMap<HostCandidate, string>;
  /** Undefined: hedging is off. */
  readonly hedge?: HedgeDelays | undefined;
  /** For the operator: they name variables. */
  readonly notes: readonly string[];
  readonly pick: PickName;
  /** Undefined: they are always asked in one order. */
  readonly choice: PickRule | undefined;
}

export interface ResolverInputs {
  readonly providers: ReadonlyMap<string, MountedProvider>;
  readonly unmounted: ReadonlyMap<string, string>;
  readonly models: ReadonlyMap<string, ModelRoute>;
  readonly catalogue: Catalogue;
  /** Where each kind of model is asked for: "/v1/images/generations". */
  readonly doors: ReadonlyMap<Kind, string>;
  readonly targets: { target(name: TargetName): UpstreamTarget };
  readonly now: () => number;
}

/** Whether this client may use this name, or this id. */
export type May = (name: string) => boolean;

/** What a name leads to. */
export interface NameLookup {
  readonly route: ModelRoute | undefined;
  /** Of candidates, mounted or not; none where the file does not know the name. */
  readonly ids: readonly string[];
  readonly absent: readonly {
    readonly id: string;
    readonly provider: string;
    readonly why: string;
  }[];
  readonly candidates: HostCandidate[];
  readonly closed: Map<HostCandidate, string>;
  /** Models that are listed and are asked for elsewhere. */
  readonly wrongKind: { readonly id: string; readonly kind: Kind }[];
  readonly unserved: string[];
}
