import { weightedShuffle, formatShare } from "./draw.ts";
import type { RoutingRule } from "./pick.ts";

export const weighted: RoutingRule = {
  order: (candidates, { random }) => weightedShuffle(candidates, random),
  explain: (candidate, candidates) => `${formatShare(candidate, candidates)} of the calls`,
};
