// Orders candidates by the expected cost of this request, from the catalog's current prices and the
// request's size. The same output size is assumed for all candidates, up to each model's output
// limit. Candidates without a known price come last, because they may cost anything.
import { wallClock } from "../../lib/time/wall-clock.ts";
import { expectedCost } from "../../money/estimate.ts";
import type { HostCandidate } from "../exchange/mounted.ts";
import { priceTermsOf, outputHistoryKey } from "../metering/price-terms.ts";
import { ordered } from "./ordered.ts";
import type { RoutingRuleInputs, RoutingRule } from "./routing-rule.ts";

export const cheapest: RoutingRule = {
  order(candidates, of) {
    const base = ordered.order(candidates, of);
    const costs = new Map(estimateCosts(base, of));
    return base.toSorted((a, b) => compareCosts(costs.get(a)!, costs.get(b)!));
  },
  explain(candidate, candidates, of) {
    const cost = estimateCosts(candidates, of).find(([one]) => one === candidate)?.[1];
    return cost === null || cost === undefined
      ? "price unknown"
      : `${formatDollars(cost)} for ${of.operationSpec.priceExamples[0].description}`;
  },
};

function estimateCosts(
  candidates: readonly HostCandidate[],
  { x, facts, operationSpec, outputHistory }: RoutingRuleInputs,
): readonly [HostCandidate, bigint | null][] {
  const at = wallClock();
  const writes = Math.max(
    0,
    ...candidates.map(({ id }) => outputHistory.p95(outputHistoryKey(x, id)) ?? 0),
  );
  return candidates.map((seat) => {
    const { price, limits } = seat.info;
    const cost = expectedCost({
      ...priceTermsOf(seat, facts),
      budgetMode: "expected",
      price: price ?? null,
      input: Math.min(x.inputSize.tokens, limits?.context ?? Infinity),
      output: facts.maxOutput,
      modelMaxOutput: limits?.output,
      typicalOutput: writes,
      n: facts.n,
      hasMedia: facts.media !== undefined || facts.features.includes("audio"),
      exactUsage: facts.exactUsage,
      expectedUsage: facts.expectedUsage,
      operationSpec,
      at,
    });
    return [seat, cost];
  });
}

function compareCosts(a: bigint | null, b: bigint | null): number {
  if (a === null || b === null) return Number(a === null) - Number(b === null);
  return a < b ? -1 : a > b ? 1 : 0;
}

const formatDollars = (nano: bigint): string => `$${Number((Number(nano) / 1e9).toPrecision(3))}`;
