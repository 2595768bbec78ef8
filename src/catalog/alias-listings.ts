import { isDeepStrictEqual } from "node:util";
import type { ModelInfo } from "../model/facts.ts";
import type { Listing } from "./listing.ts";

const MAX_DEPTH = 16;

/**
 * Lists each alias as a model of its own. It has the metadata on which all models behind it agree,
 * because any of them may respond. Its data policy is that of the first model, which is tried
 * first.
 */
export function aliasListings(
  aliases: ReadonlyMap<string, readonly string[]>,
  listings: ReadonlyMap<string, Listing>,
): ReadonlyMap<string, Listing> {
  const found = new Map<string, Listing>();
  for (const [name, candidates] of aliases) {
    if (name.includes("*")) continue;
    const [first, ...others] = resolveCandidates(candidates, aliases, listings, 0);
    if (!first) continue;
    const { id: _, provider, policy, ...facts } = first;
    const agreed = Object.entries(facts).filter(([field, value]) =>
      others.every((o) => isDeepStrictEqual(o[field as keyof ModelInfo], value)),
    );
    const info = { model: name, ...Object.fromEntries(agreed), operation: first.operation };
    found.set(name, { ...info, id: name, provider, policy });
  }
  return found;
}

function resolveCandidates(
  candidates: readonly string[],
  aliases: ReadonlyMap<string, readonly string[]>,
  listings: ReadonlyMap<string, Listing>,
  depth: number,
): Listing[] {
  if (depth > MAX_DEPTH) return [];
  return candidates.flatMap((id) => {
    const next = aliases.get(id);
    const listing = listings.get(id);
    // An alias may have the same name as its target model.
    if (listing) return [listing];
    return next ? resolveCandidates(next, aliases, listings, depth + 1) : [];
  });
}
