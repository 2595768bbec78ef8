// The routing rule for each value of `pick:`.
import type { RoutingStrategy } from "../../model/routing-strategy.ts";
import type { HostCandidate } from "../exchange/mounted.ts";
import { cheapest } from "./cheapest.ts";
import { ordered } from "./ordered.ts";
import type { RoutingRuleInputs, RoutingRule } from "./routing-rule.ts";
import { sticky } from "./sticky.ts";
import { weightedShuffle, formatShare } from "./weighted-shuffle.ts";

const weighted: RoutingRule = {
  order: (candidates, { random }) => weightedShuffle(candidates, random),
  explain: (candidate, candidates) => `${formatShare(candidate, candidates)} of the calls`,
};

// Orders by the lowest estimated time to first token. Equal candidates keep the order of
// gateway.yaml, and the credentials of one model share its calls.
const fastest: RoutingRule = {
  usesLatency: true,
  order(candidates, of) {
    const base = ordered.order(candidates, of);
    const at = new Map(base.map((seat) => [seat, of.estimateLatency(seat)]));
    return base.toSorted((a, b) => at.get(a)! - at.get(b)!);
  },
  explain(candidate, _seats, of) {
    const ms = of.estimateLatency(candidate);
    return ms > 0 ? `first token after ${Math.round(ms)} ms` : "not measured yet";
  },
};

export const ROUTING_RULES: { readonly [P in RoutingStrategy]: RoutingRule } = {
  ordered,
  weighted,
  fastest,
  cheapest,
  sticky,
};

/**
 * Returns the first endpoint of each provider, model, and credential. Endpoints of the same ones
 * must be adjacent.
 */
export function firstEndpoints(candidates: readonly HostCandidate[]): readonly HostCandidate[] {
  const firsts = candidates.filter(
    (one, i) => i === 0 || !isSameCredentialAndModel(one, candidates[i - 1]!),
  );
  return firsts.length === candidates.length ? candidates : firsts;
}

export const isSameCredentialAndModel = (a: HostCandidate, b: HostCandidate): boolean =>
  a.id === b.id && a.credential === b.credential;

/**
 * Applies a rule. All endpoints of one provider, model, and credential move together and keep their
 * order.
 */
export function applyRoutingRule(
  candidates: readonly HostCandidate[],
  rule: RoutingRule,
  of: RoutingRuleInputs,
): readonly HostCandidate[] {
  const firsts = firstEndpoints(candidates);
  if (firsts.length < 2) return candidates;
  const order = rule.order(firsts, of);
  if (firsts === candidates) return order;
  return order.flatMap((seat) => {
    const from = candidates.indexOf(seat);
    let to = from + 1;
    while (to < candidates.length && isSameCredentialAndModel(candidates[to]!, seat)) to++;
    return candidates.slice(from, to);
  });
}

/**
 * Returns the rule for a name. It is chosen when the name is resolved, so a request whose order
 * never changes costs nothing.
 */
export function routingRuleFor(
  candidates: readonly HostCandidate[],
  pick: RoutingStrategy,
): RoutingRule | undefined {
  const firsts = firstEndpoints(candidates);
  const models = new Set(firsts.map(({ id }) => id)).size;
  return firsts.length < 2 || (pick === "ordered" && models === firsts.length)
    ? undefined
    : ROUTING_RULES[pick];
}
