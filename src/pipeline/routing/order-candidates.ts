// Connects the route stage to routing rules: passes them the request and the measured latency.
import type { Resolution } from "./resolution.ts";
import type { Generation } from "../generation.ts";
import type { HostCandidate } from "../exchange/mounted.ts";
import type { RoutingRuleInputs } from "./routing-rule.ts";
import { applyRoutingRule } from "./routing-rules.ts";

/**
 * The request that is routed. `hypothetical`: replaces randomness and measured latency if nothing
 * is sent.
 */
export interface OrderInputs extends Pick<
  RoutingRuleInputs,
  "x" | "frontend" | "facts" | "operationSpec"
> {
  readonly gen: Pick<Generation, "outputHistory">;
  readonly hypothetical?: Pick<RoutingRuleInputs, "random" | "estimateLatency">;
}

/** Orders candidates as they would be called if all are healthy. */
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
    estimateLatency: ({ mounted: { target } }) => target.latencyOf(stream).estimateMs(now),
  };
}
