import { effectivePolicy } from "../../catalogue/policy.ts";
import type { DataPolicy, EffectivePolicy, Feature, ModelInfo } from "../../model/facts.ts";
import type { HostCandidate } from "../mounted.ts";
import { matches } from "./pattern.ts";

type Way = Omit<HostCandidate["~"], "target" | "share">;

/** What one way to a model does with data: what every level says of it, at this moment. */
export function policyOf(
  way: Way,
  info: ModelInfo,
  now: number,
  features: readonly Feature[] = [],
): EffectivePolicy {
  const { provider, endpoint, credential } = way;
  return effectivePolicy({
    provider: provider.data,
    endpoint: endpoint.endpoint.data,
    exceptions: exceptions(way, info).map((e) => e.data),
    model: info.data,
    credential: credential.zdr,
    features,
    protocol: endpoint.protocol?.id ?? null,
    trusted: provider.trusted,
    now,
  });
}

/** Each level that speaks, by name and with its own words: for an operator that asks why. */
export function sayingsOf(
  way: Way,
  info: ModelInfo,
): readonly { readonly level: string; readonly data: Partial<DataPolicy> }[] {
  const { provider, endpoint } = way;
  return [
    { level: "provider", data: provider.data },
    { level: "endpoint", data: endpoint.endpoint.data },
    ...exceptions(way, info).map(({ data, ...of }) => ({
      level: Object.entries(of)
        .map(([what, which]) => `${what} ${which}`)
        .join(", "),
      data,
    })),
    { level: "model", data: info.data },
  ].flatMap(({ level, data }) => (data ? [{ level, data }] : []));
}

const exceptions = ({ provider, endpoint }: Way, info: ModelInfo) =>
  provider.exceptions.filter(
    (e) =>
      (e.protocol === undefined || e.protocol === endpoint.protocol?.id) &&
      (e.kind === undefined || e.kind === endpoint.kind) &&
      (e.model === undefined || matches(e.model, info.model)),
  );
