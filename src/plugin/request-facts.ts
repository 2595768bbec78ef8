// What a look at a body says of a request, before anything decodes it.
import type { Feature } from "../model/facts.ts";
import type { Field, Opt } from "../model/values.ts";
import type { CostFactors } from "../model/operations/operation-spec.ts";
import type { References } from "./references.ts";

/** features: capabilities and privacy · the rest: the reserve. */
export interface RequestFacts extends CostFactors {
  /** Features that the request needs. */
  features: readonly Feature[];
  /** As the client asks for it; what upstream reports wins. */
  tier?: Opt<string>;
  /** What a price's multipliers ask for: { speed: "fast" }. */
  pricingAttributes?: Opt<{ readonly [fact: string]: Opt<string> }>;
  /** Pictures, sound, documents: how many, and how many bytes of the body they are. */
  media?: Opt<{ count: number; bytes: number }>;
  /** Other models that it names: each may be asked as well, and is billed at its own price. `uses`: how often, where it says so. */
  additionalModels?: Opt<readonly { model: string; maxUses?: Opt<number> }[]>;
  /** How often tools that upstream runs may run, where the request bounds it. */
  maxToolRuns?: Opt<number>;
  /** Upstream reads more than stands here: something that it keeps is named. */
  readsStoredContent?: Opt<boolean>;
  /** What it names that is not its own: models, tools, state. Absent: the host looks for itself. */
  references?: Opt<References>;
  /** What is asked needs work on the answer that bytes in passing cannot get: this request is translated. */
  requiresTranslation?: Opt<boolean>;
}

/** By what the turns of one conversation are known to belong together. The host compares it, as a hash with the key's id, and keeps none of it. */
export interface ConversationKey {
  /** What the client calls it, in a field that is meant for that: it counts before all else. At most 256 characters. */
  id?: Opt<string>;
  /** How it begins, in parts that later turns do not change: instructions, tools, the first turn of the user. */
  prefix: readonly Opt<Field>[];
}
