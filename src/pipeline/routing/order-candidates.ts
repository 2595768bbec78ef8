// The station's own words to a pick: what it may know of a request, and where it measures.
import type { Resolution } from "./resolution.ts";
import type { Generation } from "../generation.ts";
import type { HostCandidate } from "../exchange/mounted.ts";
import type { RoutingRuleInputs } from "./routing-rule.ts";
import { applyRoutingRule } from "./routing-rules.ts";

/** What is known where a request is routed. `supposed`: in place of chance and of what was measured, where nothing is asked. */
export interface OrderInputs extends Pick<
  RoutingRuleInputs,
  "x" | "frontend" | "facts" | "operationSpec"
> {
  readonly gen: Pick<Generation, "outputHistory">;
  readonly hypothetical?: Pick<RoutingRuleInputs, "random" | "estimateLatency">;
}

/** In the order in which they would be asked if all are well. */
export function orderCandidates(
  of: OrderInputs,
  { routingRule }: Resolution,
  candidates: readonly HostCandidate[],
): readonly HostCandidate[] {
  if (!routingRule || candidates.length < 2) return candidates;
  const { x, frontend, facts, operationSpec, gen } = of;
  const supposed = of.hypothetical ?? liveInputs(x.stream);
  return applyRoutingRule(candidates, routingRule, {
    x,
    frontend,
    facts,
    operationSpec,
    outputHistory: gen.outputHistory,
    ...supposed,
  });
}

function liveInputs(stream: boolean): Pick<RoutingRuleInputs, "random" | "estimateLatency"> {
  const now = performance.now();
  return {
    random: Math.random,
    estimateLatency: ({ "~": { target } }) => target.latencyOf(stream).estimateMs(now),
  };
}
