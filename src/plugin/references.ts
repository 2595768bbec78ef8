// What is looked for in a body, before it is routed and again when it leaves: what it names that is not its own, and what of it
// was not reviewed. The tables and the walks are in tollgate/protocols/references.
import type { Feature } from "../model/facts.ts";
import type { Json, JsonObject, Opt } from "../model/values.ts";

/** refers: what was kept before is looked up. stores: what is sent now is kept, which is the client's own affair without privacy. */
export type ReferenceEffect = "refers" | "stores";

/**
 * One word of a protocol by which a body names, or asks for, something that is kept. Tables in
 * `tollgate/protocols/references` are made of them. The host reads them when it looks over a body; `does`, `says` and `when`
 * are pure, and a throw in one is a 500.
 */
export interface StateReferenceRule {
  /** Feature that the request needs if the field is set. */
  readonly feature: Feature;
  /** Whether the field refers to stored content or stores content. */
  readonly effect: ReferenceEffect | ((value: Json) => ReferenceEffect);
  /**
   * Where the operator relays state. passthrough: by a client of the upstream's own protocol · bound: only what the host has
   * bound to the key · never: it goes on after the answer, or is found again by every client.
   */
  readonly relayPolicy: "passthrough" | "bound" | "never";
  /** What to send in its place. */
  readonly alternative: string;
  /** The code by which clients know what to do, where there is one; `says` are its words. */
  readonly code?: string;
  /** Returns the explanation that goes with `code` in the error. */
  readonly message?: (value: Json) => string;
  /** Whether this value says it; absent: any that says anything. */
  readonly matches?: (value: Json, holder: JsonObject) => boolean;
  /** The member inside that says it. */
  readonly member?: string;
}

/** One thing that a body names and that is not its own: where it stands, and what it is. */
export type Reference = {
  /** The top-level field that it stands in. */
  readonly field: string;
  /** "tools[0].container", as clients know it. */
  readonly path: string;
} & (
  | {
      /** Stored content of the provider. */
      readonly type: "state";
      /** Rule that matched the field. */
      readonly rule: StateReferenceRule;
      /** Whether the field refers to stored content or stores content. */
      readonly effect: ReferenceEffect;
      /** Value of the field. */
      readonly value: Json;
    }
  | { readonly type: "hosted" | "cache"; readonly feature: Feature }
  /** `uses`: how often it may be asked, as it stands beside its name. */
  | { readonly type: "model"; readonly model: string; readonly maxUses: Opt<Json> }
  | { readonly type: "account" }
);

/** What a body names that is not its own: the first place in each top-level field for each thing that is named. */
export type References = readonly Reference[];

/**
 * What may stand in a member that was reviewed. plain: values and lists of values · free: the client's own words, in which
 * no provider looks for an order · members by name · or, as a pair, by the `type` that an object says it is: the one that an
 * object without a type is, and all that were reviewed, with `_*` for a date at the end.
 */
export type AllowedContent =
  | "plain"
  | "free"
  | AllowedFields
  | readonly [absent: string | null, types: { readonly [type: string]: AllowedFields | "free" }];

/** The members of one object that were reviewed, by name, with what may stand in each. */
export interface AllowedFields {
  readonly [member: string]: AllowedContent;
}

/** What of a protocol's bodies may leave under Service-ZDR, each group with its reason. What is in none of them stays. */
export type FieldAllowlist = readonly (readonly [why: string, fields: AllowedFields])[];
