// A generation's catalogue: what its providers ship, what the operator says of them, what they say of themselves.
import { wallClock } from "../../lib/wall-clock.ts";
import type { Work } from "../../model/work.ts";
import { createCatalogue, type Catalogue, type ProviderFacts } from "../../catalogue/catalogue.ts";
import { satisfies } from "../../catalogue/policy.ts";
import type { GatewayConfig } from "../../config/types.ts";
import { FREE } from "../../money/price.ts";
import type { EffectivePolicy, ModelInfo } from "../../model/facts.ts";
import type { MountedProvider } from "../../walk/mounted.ts";
import { matches } from "../../walk/candidates/pattern.ts";
import { policyOf } from "../../walk/candidates/policy.ts";
import { serves } from "../../walk/candidates/lanes.ts";
import type { Services } from "../services/services.ts";

export function fillCatalogue(
  config: GatewayConfig,
  providers: ReadonlyMap<string, MountedProvider>,
  services: Services,
  works: ReadonlyMap<string, Work>,
): Catalogue & Disposable {
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
      lists: providers.get(mounted.name)?.provider.models !== undefined,
    });
  return createCatalogue({
    providers: stocks,
    aliases: new Map([...config.models].map(([name, route]) => [name, route.candidates])),
    lists: services.lists,
    works,
    policy: (name, info) => bestPolicy(providers.get(name), info),
  });
}

/** The strictest policy among the ways to a model: a private request is routed by that way. */
function bestPolicy(provider: MountedProvider | undefined, info: ModelInfo): EffectivePolicy {
  const policies = (provider?.credentials ?? [])
    .filter((c) => c.models?.some((p) => matches(p, info.model)) ?? true)
    .flatMap((credential) =>
      provider!.endpoints
        .filter((e) => e.kind === info.kind)
        .filter((e) => serves(e, info.protocols, info.model))
        .map((endpoint) =>
          policyOf({ provider: provider!, endpoint, credential }, info, wallClock()),
        ),
    );
  return (
    policies.find((p) => satisfies("strict", p)) ??
    policies.find((p) => satisfies("required", p)) ??
    policies[0] ?? {
      retention: { kind: "unknown" },
      trains: "unknown",
      basis: "unknown",
      because: ["retention_unknown"],
    }
  );
}
