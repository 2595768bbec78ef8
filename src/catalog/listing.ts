import type { EffectivePolicy, ModelInfo } from "../model/facts.ts";

/** A model that exists, as a list has it. */
export interface Listing extends ModelInfo {
  /** Provider-qualified, or an alias. */
  id: string;
  provider: string;
  policy: EffectivePolicy;
}
