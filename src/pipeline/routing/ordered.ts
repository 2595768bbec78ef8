// Keeps the order of gateway.yaml. The credentials of one model share its calls.
import type { HostCandidate } from "../exchange/mounted.ts";
import { weightedShuffle, formatShare } from "./weighted-shuffle.ts";
import type { RoutingRule } from "./routing-rule.ts";

export const ordered: RoutingRule = {
  order(candidates, { random }) {
    const list: HostCandidate[] = [];
    for (let from = 0; from < candidates.length;) {
      const { id } = candidates[from]!;
      let to = from + 1;
      while (to < candidates.length && candidates[to]!.id === id) to++;
      if (to - from === 1) list.push(candidates[from]!);
      else list.push(...weightedShuffle(candidates.slice(from, to), random));
      from = to;
    }
    return list;
  },
  explain(candidate, candidates) {
    const own = candidates.filter(({ id }) => id === candidate.id);
    return own.length > 1 ? `${formatShare(candidate, own)} of the model's calls` : undefined;
  },
};
