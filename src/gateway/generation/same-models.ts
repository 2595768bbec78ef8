// Names that lead to models which cannot stand in for each other. What one of them made is stored, and is compared with what
// another made as soon as that one answers: such a name is an error, not a risk to be run.
import type { Catalogue } from "../../catalogue/catalogue.ts";
import { problem } from "../../config/problems.ts";
import { below } from "../../config/tree.ts";
import type { GatewayConfig } from "../../config/types.ts";
import { carried } from "../../walk/candidates/pattern.ts";
import type { PluginSetup } from "./plugin-setup.ts";

type Routes = GatewayConfig["models"];

const MOST_DEPTH = 16;

export function checkSameModels(
  { models, providers }: GatewayConfig,
  catalogue: Catalogue,
  setup: PluginSetup,
): void {
  const known = [...providers.keys()].flatMap((provider) => knownOf(provider, catalogue));
  for (const [name, { candidates }] of models)
    for (const meant of namesOf(name, candidates, known)) {
      const mixed = mixedIn(leadsTo(meant, models, 0), catalogue);
      if (!mixed) continue;
      const [noun, first, other] = mixed;
      setup.complain(
        below("/models", name),
        problem.badValue(
          `${noun} cannot stand in for another: ${meant} leads to ${first} and to ${other}`,
          "give each model a name of its own; if they are one model under two names, say so with priced_as",
        ),
      );
      break;
    }
}

/** What is known of a provider's models, whether or not its live list has come yet. */
const knownOf = (provider: string, { shelf, works }: Catalogue): readonly string[] =>
  [...shelf(provider).values()].flatMap(({ info }) =>
    works.get(info.kind)?.same ? [`${provider}/${info.model}`] : [],
  );

/** Of a pattern the names that lead to one of these. */
function namesOf(
  name: string,
  candidates: readonly string[],
  known: readonly string[],
): readonly string[] {
  if (!name.includes("*")) return [name];
  const stars = new Set<string>();
  for (const candidate of candidates)
    if (candidate.includes("*"))
      for (const id of known) {
        const star = carried(candidate, id);
        if (star !== undefined) stars.add(star);
      }
  return Array.from(stars, (star) => name.replace("*", () => star));
}

/** The models that a name stands for. */
function leadsTo(name: string, models: Routes, depth: number): readonly string[] {
  const route = models.get(name) ?? patternFor(name, models);
  if (!route || depth > MOST_DEPTH) return [name];
  const star = carried(route.name, name) ?? "";
  return route.candidates.flatMap((candidate) => {
    const id = candidate.replace("*", () => star);
    return id === name || !models.has(id) ? [id] : leadsTo(id, models, depth + 1);
  });
}

const patternFor = (name: string, models: Routes) =>
  [...models.values()]
    .filter((route) => route.name.includes("*") && carried(route.name, name) !== undefined)
    .toSorted((a, b) => b.name.length - a.name.length)[0];

/** A model of which nothing is known counts as what the others are: a name for chats and for vectors has no use. */
function mixedIn(
  ids: readonly string[],
  catalogue: Catalogue,
): readonly [noun: string, first: string, other: string] | undefined {
  const found = ids.map((id) => {
    const slash = id.indexOf("/");
    const { info, listed } = catalogue.find(id.slice(0, slash), id.slice(slash + 1));
    return { id, listed, kind: info.kind, as: lastOf(info.pricedAs ?? id) };
  });
  const first = found.find(({ kind }) => catalogue.works.get(kind)?.same);
  const other = first && found.find((one) => isOther(one, first));
  return other && [catalogue.works.get(first.kind)!.noun, first.id, other.id];
}

interface Led {
  listed: boolean;
  kind: string;
  as: string;
}

const isOther = (one: Led, first: Led): boolean =>
  (!one.listed || one.kind === first.kind) && one.as !== first.as;

/** Routers put the maker before the model. */
const lastOf = (id: string): string => id.slice(id.lastIndexOf("/") + 1).toLowerCase();
