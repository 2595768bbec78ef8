import { isDeepStrictEqual } from "node:util";
import type { ModelInfo } from "../model/facts.ts";
import type { Listing } from "./listing.ts";

const MAX_DEPTH = 16;

/**
 * An alias as a model of its own: it knows what all the models behind it agree on, since any of them may answer. Its
 * policy is the first one's, which is the first to be tried.
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
    // An alias may have the name of the model it stands for.
    if (listing) return [listing];
    return next ? resolveCandidates(next, aliases, listings, depth + 1) : [];
  });
}
