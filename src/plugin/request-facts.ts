// Facts that request analysis finds in a body before it is decoded.
import type { Feature } from "../model/facts.ts";
import type { Field, Opt } from "../model/values.ts";
import type { CostFactors } from "../model/operations/operation-spec.ts";
import type { References } from "./references.ts";

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
   * Other models that the request names. Each may be called too, and is billed at its own price.
   * `maxUses` is the maximum number of calls, if the request sets one.
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
   * References of the body to models, tools, and stored content. If unset, the host finds them
   * itself.
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
 * the ID of the key, and stores none of it.
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
