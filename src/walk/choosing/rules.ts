// What each word of `pick:` does.
import type { PickName } from "../../model/pick.ts";
import type { HostCandidate } from "../mounted.ts";
import { cheapest } from "./cheapest.ts";
import { fastest } from "./fastest.ts";
import { ordered } from "./ordered.ts";
import type { PickInputs, PickRule } from "./pick.ts";
import { sticky } from "./sticky.ts";
import { weighted } from "./weighted.ts";

export const RULES: { readonly [P in PickName]: PickRule } = {
  ordered,
  weighted,
  fastest,
  cheapest,
  sticky,
};

/** Of each provider, model and credential the first endpoint. They stand together. */
export function seatsOf(candidates: readonly HostCandidate[]): readonly HostCandidate[] {
  const seats = candidates.filter((one, i) => i === 0 || !isSeatOf(one, candidates[i - 1]!));
  return seats.length === candidates.length ? candidates : seats;
}

export const isSeatOf = (a: HostCandidate, b: HostCandidate): boolean =>
  a.id === b.id && a.credential === b.credential;

/** All endpoints of a seat go with it, in their order. */
export function picked(
  candidates: readonly HostCandidate[],
  rule: PickRule,
  of: PickInputs,
): readonly HostCandidate[] {
  const seats = seatsOf(candidates);
  if (seats.length < 2) return candidates;
  const order = rule.order(seats, of);
  if (seats === candidates) return order;
  return order.flatMap((seat) => {
    const from = candidates.indexOf(seat);
    let to = from + 1;
    while (to < candidates.length && isSeatOf(candidates[to]!, seat)) to++;
    return candidates.slice(from, to);
  });
}

/** Worked out with the name, so that nothing is done for a request whose order is always the same. */
export function choiceOf(
  candidates: readonly HostCandidate[],
  pick: PickName,
): PickRule | undefined {
  const seats = seatsOf(candidates);
  const models = new Set(seats.map(({ id }) => id)).size;
  return seats.length < 2 || (pick === "ordered" && models === seats.length)
    ? undefined
    : RULES[pick];
}
