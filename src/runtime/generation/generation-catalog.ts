// Builds a generation's catalog from the models that providers ship, the operator's settings, and
// the providers' live lists.
import { wallClock } from "../../lib/time/wall-clock.ts";
import type { OperationSpec } from "../../model/operations/operation-spec.ts";
import { createCatalog, type Catalog, type ProviderFacts } from "../../catalog/catalog.ts";
import { satisfies } from "../../catalog/data-policy.ts";
import type { GatewayConfig } from "../../config/gateway-config.ts";
import { FREE } from "../../money/price.ts";
import type { EffectivePolicy, ModelInfo } from "../../model/facts.ts";
import type { MountedProvider } from "../../pipeline/exchange/mounted.ts";
import { matchesPattern } from "../../catalog/model-names.ts";
import { effectivePolicyOf } from "../../pipeline/privacy/candidate-policy.ts";
import { servesModel } from "../../pipeline/routing/resolver.ts";
import type { Services } from "../services.ts";

export function createGenerationCatalog(
  config: GatewayConfig,
  providers: ReadonlyMap<string, MountedProvider>,
  services: Services,
  operations: ReadonlyMap<string, OperationSpec>,
): Catalog & Disposable {
  const stocks = new Map<string, ProviderFacts>();
  for (const mounted of config.providers.values())
    stocks.set(mounted.name, {
      operator: new Map(
        [...mounted.facts].map(([model, { price, ...facts }]) => [
          model,
          {
            ...facts,
            model,
            ...(price !== undefined && { price: price === "free" ? FREE : price }),
          },
        ]),
      ),
      shipped: mounted.definition.facts,
      plugin: mounted.definition.name,
      hasLiveList: providers.get(mounted.name)?.plugin.listModels !== undefined,
    });
  return createCatalog({
    providers: stocks,
    aliases: new Map([...config.models].map(([name, route]) => [name, route.candidates])),
    lists: services.modelLists,
    feed: services.priceOverlay,
    operations,
    policyOf: (name, info) => strictestPolicy(providers.get(name), info),
  });
}

/**
 * Returns the strictest policy among the credentials and endpoints that lead to a model, because a
 * private request uses that combination.
 */
function strictestPolicy(provider: MountedProvider | undefined, info: ModelInfo): EffectivePolicy {
  const policies = (provider?.credentials ?? [])
    .filter((c) => c.models?.some((p) => matchesPattern(p, info.model)) ?? true)
    .flatMap((credential) =>
      provider!.endpoints
        .filter((e) => e.operation === info.operation)
        .filter((e) => servesModel(e, info.protocols, info.model))
        .map((endpoint) =>
          effectivePolicyOf({ provider: provider!, endpoint, credential }, info, wallClock()),
        ),
    );
  return (
    policies.find((p) => satisfies("strict", p)) ??
    policies.find((p) => satisfies("required", p)) ??
    policies[0] ?? {
      retention: { kind: "unknown" },
      trains: "unknown",
      basis: "unknown",
      reasons: ["retention_unknown"],
    }
  );
}
