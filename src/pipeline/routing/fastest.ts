// The one that is reckoned to bring its first content soonest. What is as fast as another keeps the order of gateway.yaml, and the
// credentials of one model share its calls.
import { ordered } from "./ordered.ts";
import type { RoutingRule } from "./routing-rule.ts";

export const fastest: RoutingRule = {
  usesLatency: true,
  order(candidates, of) {
    const base = ordered.order(candidates, of);
    const at = new Map(base.map((seat) => [seat, of.estimateLatency(seat)]));
    return base.toSorted((a, b) => at.get(a)! - at.get(b)!);
  },
  explain(candidate, _seats, of) {
    const ms = of.estimateLatency(candidate);
    return ms > 0 ? `first content after ${Math.round(ms)} ms` : "not measured yet";
  },
};
