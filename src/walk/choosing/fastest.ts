// The one that is reckoned to bring its first content soonest. What is as fast as another keeps the order of gateway.yaml, and the
// credentials of one model share its calls.
import { ordered } from "./ordered.ts";
import type { PickRule } from "./pick.ts";

export const fastest: PickRule = {
  times: true,
  order(seats, of) {
    const base = ordered.order(seats, of);
    const at = new Map(base.map((seat) => [seat, of.reckoned(seat)]));
    return base.toSorted((a, b) => at.get(a)! - at.get(b)!);
  },
  why(seat, _seats, of) {
    const ms = of.reckoned(seat);
    return ms > 0 ? `first content after ${Math.round(ms)} ms` : "not measured yet";
  },
};
