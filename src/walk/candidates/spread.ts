// Which candidate is tried first. Credentials share load by their weights. Under `ordered` those of one provider and model share
// it, and the order of models stays; under `weighted` all candidates do.
import type { HostCandidate } from "../mounted.ts";
import type { Resolution } from "./resolution.ts";

export function spread(
  candidates: readonly HostCandidate[],
  pick: Resolution["pick"],
): readonly HostCandidate[] {
  if (candidates.length < 2) return candidates;
  /** One way to one credential, with its endpoints in their order. */
  const ways = Map.groupBy(candidates, (candidate) => `${candidate.id}\n${candidate.credential}`);
  if (ways.size < 2) return candidates;
  const drawn = [...ways.values()].map((way) => ({
    way,
    id: way[0]!.id,
    at: Math.random() ** (1 / Math.max(way[0]!["~"].credential.weight, 1e-9)),
  }));
  if (pick === "weighted") return shuffled(drawn);
  const groups = Map.groupBy(drawn, ({ id }) => id);
  return groups.size === drawn.length ? candidates : [...groups.values()].flatMap(shuffled);
}

const shuffled = (
  drawn: { readonly way: readonly HostCandidate[]; readonly at: number }[],
): HostCandidate[] => drawn.toSorted((a, b) => b.at - a.at).flatMap(({ way }) => way);
