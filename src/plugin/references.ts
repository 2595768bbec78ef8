// Types for the results of request analysis: references to content outside of the body, and fields
// that are not on the allowlist. A body is analyzed before routing and again when it is sent. The
// tables and functions for the analysis are in tollgate/protocols/references.
import type { Feature } from "../model/facts.ts";
import type { Json, JsonObject, Opt, Field } from "../model/values.ts";
import type { CostFactors } from "../model/operations/operation-spec.ts";

/**
 * Effect of a field. `refers`: it refers to content that was stored earlier. `stores`: the provider
 * stores the content of this request. If privacy is off, the client may decide this.
 */
export type ReferenceEffect = "refers" | "stores";

/**
 * A rule for one protocol field that refers to stored content or stores content. The tables in
 * `tollgate/protocols/references` consist of such rules. The host applies them when it analyzes a
 * body. `effect`, `message`, and `matches` must be pure. If one throws, the client receives a 500.
 */
export interface StateReferenceRule {
  /** Feature that the request needs if the field is set. */
  readonly feature: Feature;
  /** Whether the field refers to stored content or stores content. */
  readonly effect: ReferenceEffect | ((value: Json) => ReferenceEffect);
  /**
   * Clients that may use the field if the operator relays state. `passthrough`: clients of the
   * provider's own protocol. `bound`: only content that the host has bound to the key. `never`: no
   * client, because the state is kept after the response, or every client could retrieve it.
   */
  readonly relayPolicy: "passthrough" | "bound" | "never";
  /** Alternative that the client can send instead. */
  readonly alternative: string;
  /** Error code on which clients can act, if there is one. `message` explains the error. */
  readonly code?: string;
  /** Returns the explanation that goes with `code` in the error. */
  readonly message?: (value: Json) => string;
  /** Whether this value refers to or stores content. Default: any value that is set. */
  readonly matches?: (value: Json, holder: JsonObject) => boolean;
  /** Name of the nested member that the rule applies to. */
  readonly member?: string;
}

/**
 * A reference in a body to content, a tool, a model, or an account outside of the body, with its
 * position.
 */
export type Reference = {
  /** Top-level field that contains the reference. */
  readonly field: string;
  /** Path of the reference as clients know it, such as "tools[0].container". */
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
  /** Another model. `maxUses` is the maximum number of calls, as specified in the body. */
  | { readonly type: "model"; readonly model: string; readonly maxUses: Opt<Json> }
  | { readonly type: "account" }
);

/**
 * References of a body to content outside of it: for each referenced object, its first position in
 * each top-level field.
 */
export type References = readonly Reference[];

/**
 * Content that a member on the allowlist may have.
 *
 * - `plain`: values and lists of values.
 * - `free`: the client's own text, which no provider reads as instructions.
 * - An object: nested members, by name.
 * - A pair: members by the object's `type`. The first item is the type of an object without one.
 *   The second lists all allowed types, with `_*` at the end for a date.
 */
export type AllowedContent =
  | "plain"
  | "free"
  | AllowedFields
  | readonly [absent: string | null, types: { readonly [type: string]: AllowedFields | "free" }];

/** Allowed members of one object, by name, with the content that each may have. */
export interface AllowedFields {
  readonly [member: string]: AllowedContent;
}

/**
 * Fields of a protocol's bodies that may be sent under Service-ZDR, in groups with a reason each.
 * Fields in no group are not sent.
 */
export type FieldAllowlist = readonly (readonly [why: string, fields: AllowedFields])[];

// Facts that request analysis finds in a body before it is decoded.

/**
 * Facts about a request. `features` are used for capabilities and privacy. The other members are
 * used for the reservation.
 */
export interface RequestFacts extends CostFactors {
  /** Features that the request needs. */
  features: readonly Feature[];
  /** Service tier that the client requests. The tier that the provider reports takes precedence. */
  tier?: Opt<string>;
  /** Values that the multipliers of a price depend on, such as `{ speed: "fast" }`. */
  pricingAttributes?: Opt<{ readonly [fact: string]: Opt<string> }>;
  /** Number of images, audio clips, and documents, and the number of body bytes that they use. */
  media?: Opt<{ count: number; bytes: number }>;
  /**
   * Other models that the request names. Each of these models may be called too and is billed at
   * its own price. `maxUses` is the maximum number of calls, if the request sets one.
   */
  additionalModels?: Opt<readonly { model: string; maxUses?: Opt<number> }[]>;
  /** Maximum number of runs of tools that the provider hosts, if the request limits it. */
  maxToolRuns?: Opt<number>;
  /**
   * Whether the request names content that the provider stores, so that the provider reads more
   * than the body.
   */
  readsStoredContent?: Opt<boolean>;
  /**
   * References of the body to models, tools, and stored content. If unset, the host finds the
   * references itself.
   */
  references?: Opt<References>;
  /**
   * Whether the request needs changes to the response that passthrough mode cannot make, so that it
   * must be translated.
   */
  requiresTranslation?: Opt<boolean>;
}

/**
 * Data that identifies the turns of one conversation. The host compares it as a hash together with
 * the ID of the key, and stores no part of it.
 */
export interface ConversationKey {
  /**
   * Conversation ID that the client sent in a field for that purpose. It takes precedence over
   * `prefix`. At most 256 characters.
   */
  id?: Opt<string>;
  /**
   * Beginning of the conversation, in parts that later turns do not change: instructions, tools,
   * and the first turn of the user.
   */
  prefix: readonly Opt<Field>[];
}
