import type { EffectivePolicy, ModelInfo } from "../model/facts.ts";

/** A model that exists, as shown in model lists. */
export interface Listing extends ModelInfo {
  /** Provider-qualified name, or an alias. */
  id: string;
  provider: string;
  policy: EffectivePolicy;
}
