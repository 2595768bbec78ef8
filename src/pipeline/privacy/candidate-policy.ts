import { effectivePolicy } from "../../catalog/data-policy.ts";
import type { DataPolicy, EffectivePolicy, Feature, ModelInfo } from "../../model/facts.ts";
import type { HostCandidate } from "../exchange/mounted.ts";
import { matchesPattern } from "../../catalog/pattern.ts";

type PolicySources = Omit<HostCandidate["~"], "target" | "share">;

/** What one way to a model does with data: what every level says of it, at this moment. */
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

/** Each level that speaks, by name and with its own words: for an operator that asks why. */
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
