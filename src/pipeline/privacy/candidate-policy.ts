import { effectivePolicy } from "../../catalog/data-policy.ts";
import type { DataPolicy, EffectivePolicy, Feature, ModelInfo } from "../../model/facts.ts";
import type { HostCandidate } from "../exchange/mounted.ts";
import { matchesPattern } from "../../catalog/model-names.ts";

type PolicySources = Omit<HostCandidate["mounted"], "target" | "share">;

/** Returns the current data policy of one candidate, combined from all levels that declare one. */
export function effectivePolicyOf(
  sources: PolicySources,
  info: ModelInfo,
  now: number,
  features: readonly Feature[] = [],
): EffectivePolicy {
  const { provider, endpoint, credential } = sources;
  return effectivePolicy({
    provider: provider.dataPolicy,
    endpoint: endpoint.definition.dataPolicy,
    exceptions: applicableExceptions(sources, info).map((e) => e.dataPolicy),
    model: info.dataPolicy,
    credential: credential.zdr,
    features,
    protocol: endpoint.protocol?.id ?? null,
    trusted: provider.isPolicyTrusted,
    now,
  });
}

/**
 * Returns every level that declares a policy, with its own values, so that operators can see which
 * level sets each value.
 */
export function policyLevels(
  sources: PolicySources,
  info: ModelInfo,
): readonly { readonly level: string; readonly data: Partial<DataPolicy> }[] {
  const { provider, endpoint } = sources;
  return [
    { level: "provider", data: provider.dataPolicy },
    { level: "endpoint", data: endpoint.definition.dataPolicy },
    ...applicableExceptions(sources, info).map(({ dataPolicy, ...of }) => ({
      level: Object.entries(of)
        .map(([what, which]) => `${what} ${which}`)
        .join(", "),
      data: dataPolicy,
    })),
    { level: "model", data: info.dataPolicy },
  ].flatMap(({ level, data }) => (data ? [{ level, data }] : []));
}

const applicableExceptions = ({ provider, endpoint }: PolicySources, info: ModelInfo) =>
  provider.dataPolicyExceptions.filter(
    (e) =>
      (e.protocol === undefined || e.protocol === endpoint.protocol?.id) &&
      (e.operation === undefined || e.operation === endpoint.operation) &&
      (e.model === undefined || matchesPattern(e.model, info.model)),
  );
