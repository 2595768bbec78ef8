// Rejects model names that map to models that cannot replace each other. The output of such a
// model, for example embeddings, is stored and compared later, so a failover to another model would
// corrupt the data. Such a name is therefore a config error.
import type { Catalog } from "../../catalog/catalog.ts";
import { problem } from "../../config/problems.ts";
import { childPointer } from "../../config/source/config-tree.ts";
import type { GatewayConfig } from "../../config/gateway-config.ts";
import { wildcardText } from "../../catalog/model-names.ts";
import type { PluginSetup } from "../plugin-host/plugin-setup.ts";

type Routes = GatewayConfig["models"];

const MAX_DEPTH = 16;

export function checkInterchangeableModels(
  { models, providers }: GatewayConfig,
  catalog: Catalog,
  setup: PluginSetup,
): void {
  const known = [...providers.keys()].flatMap((provider) => knownModelsOf(provider, catalog));
  for (const [name, { candidates }] of models)
    for (const meant of expandPattern(name, candidates, known)) {
      const mixed = findMixedModels(resolveModels(meant, models, 0), catalog);
      if (!mixed) continue;
      const [noun, first, other] = mixed;
      setup.addProblem(
        childPointer("/models", name),
        problem.badValue(
          `${noun} cannot replace another: ${meant} resolves to ${first} and to ${other}`,
          "give each model its own name; if two names are the same model, set priced_as",
        ),
      );
      break;
    }
}

/**
 * Returns the known models of a provider whose output is specific to the model. Does not wait for
 * the provider's live list.
 */
const knownModelsOf = (provider: string, { entriesOf, operations }: Catalog): readonly string[] =>
  [...entriesOf(provider).values()].flatMap(({ info }) =>
    operations.get(info.operation)?.outputIsModelSpecific ? [`${provider}/${info.model}`] : [],
  );

/** Returns the names that match a pattern and map to one of the known models. */
function expandPattern(
  name: string,
  candidates: readonly string[],
  known: readonly string[],
): readonly string[] {
  if (!name.includes("*")) return [name];
  const stars = new Set<string>();
  for (const candidate of candidates)
    if (candidate.includes("*"))
      for (const id of known) {
        const star = wildcardText(candidate, id);
        if (star !== undefined) stars.add(star);
      }
  return Array.from(stars, (star) => name.replace("*", () => star));
}

/** Returns the models that a name resolves to. */
function resolveModels(name: string, models: Routes, depth: number): readonly string[] {
  const route = models.get(name) ?? findModelPattern(name, models);
  if (!route || depth > MAX_DEPTH) return [name];
  const star = wildcardText(route.name, name) ?? "";
  return route.candidates.flatMap((candidate) => {
    const id = candidate.replace("*", () => star);
    return id === name || !models.has(id) ? [id] : resolveModels(id, models, depth + 1);
  });
}

const findModelPattern = (name: string, models: Routes) =>
  [...models.values()]
    .filter((route) => route.name.includes("*") && wildcardText(route.name, name) !== undefined)
    .toSorted((a, b) => b.name.length - a.name.length)[0];

/**
 * Returns the first two models that cannot replace each other. An unknown model is assumed to have
 * the same operation as the others, because one name for both chat and embeddings has no use.
 */
function findMixedModels(
  ids: readonly string[],
  catalog: Catalog,
): readonly [noun: string, first: string, other: string] | undefined {
  const found = ids.map((id) => {
    const slash = id.indexOf("/");
    const { info, listed } = catalog.find(id.slice(0, slash), id.slice(slash + 1));
    return {
      id,
      listed,
      operation: info.operation,
      baseName: modelBaseNameOf(info.pricedAs ?? id),
    };
  });
  const first = found.find(
    ({ operation }) => catalog.operations.get(operation)?.outputIsModelSpecific,
  );
  const other = first && found.find((one) => isIncompatible(one, first));
  return other && [catalog.operations.get(first.operation)!.noun, first.id, other.id];
}

interface ResolvedModel {
  listed: boolean;
  operation: string;
  baseName: string;
}

const isIncompatible = (one: ResolvedModel, first: ResolvedModel): boolean =>
  (!one.listed || one.operation === first.operation) && one.baseName !== first.baseName;

/** Returns the model ID without the vendor prefix that routers put before it. */
const modelBaseNameOf = (id: string): string => id.slice(id.lastIndexOf("/") + 1).toLowerCase();
