import { weightedShuffle, formatShare } from "./weighted-shuffle.ts";
import type { RoutingRule } from "./routing-rule.ts";

export const weighted: RoutingRule = {
  order: (candidates, { random }) => weightedShuffle(candidates, random),
  explain: (candidate, candidates) => `${formatShare(candidate, candidates)} of the calls`,
};
