import { effectivePolicy } from "../catalogue/policy.ts";
import type { EffectivePolicy, Feature, ModelInfo } from "../model/facts.ts";
import type { Seat } from "./generation.ts";
import { matches } from "./pattern.ts";

/** What becomes of what people wrote on one way to a model: every level that has something to say of it, at this moment. */
export function policyOf(
  { provider, endpoint, credential }: Seat["~"],
  info: ModelInfo,
  now: number,
  features: readonly Feature[] = [],
): EffectivePolicy {
  const protocol = endpoint.protocol?.id ?? null;
  return effectivePolicy({
    provider: provider.data,
    endpoint: endpoint.endpoint.data,
    exceptions: provider.exceptions
      .filter(
        (e) =>
          (e.protocol === undefined || e.protocol === protocol) &&
          (e.kind === undefined || e.kind === endpoint.kind) &&
          (e.model === undefined || matches(e.model, info.model)),
      )
      .map((e) => e.data),
    model: info.data,
    credential: credential.zdr,
    features,
    protocol,
    trusted: provider.trusted,
    now,
  });
}
