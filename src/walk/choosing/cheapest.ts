// The one whose answer is likely to cost least, by the catalogue's prices of today and the size of this very request. For all of them the
// same is taken to be written, or what a model writes at most. What has no known price comes last: it may be anything.
import { wallClock } from "../../lib/wall-clock.ts";
import { likely } from "../../money/estimate.ts";
import type { HostCandidate } from "../mounted.ts";
import { termsOf, usually } from "../money/price-terms.ts";
import { ordered } from "./ordered.ts";
import type { PickInputs, PickRule } from "./pick.ts";

export const cheapest: PickRule = {
  order(seats, of) {
    const base = ordered.order(seats, of);
    const costs = new Map(costsOf(base, of));
    return base.toSorted((a, b) => compared(costs.get(a)!, costs.get(b)!));
  },
  why(seat, seats, of) {
    const cost = costsOf(seats, of).find(([one]) => one === seat)?.[1];
    return cost === null || cost === undefined
      ? "its price is not known"
      : `${dollars(cost)} for ${of.work.examples[0].about}`;
  },
};

function costsOf(
  seats: readonly HostCandidate[],
  { x, survey, work, usual }: PickInputs,
): readonly [HostCandidate, bigint | null][] {
  const at = wallClock();
  const writes = Math.max(0, ...seats.map(({ id }) => usual.p95(usually(x, id)) ?? 0));
  return seats.map((seat) => {
    const { price, limits } = seat.info;
    const cost = likely({
      ...termsOf(seat, survey),
      mode: "expected",
      price: price ?? null,
      input: Math.min(x.size.input, limits?.context ?? Infinity),
      output: survey.maxOutput,
      limit: limits?.output,
      usual: writes,
      n: survey.n,
      media: survey.media !== undefined || survey.features.includes("audio"),
      counts: survey.counts,
      likely: survey.likely,
      work,
      at,
    });
    return [seat, cost];
  });
}

function compared(a: bigint | null, b: bigint | null): number {
  if (a === null || b === null) return Number(a === null) - Number(b === null);
  return a < b ? -1 : a > b ? 1 : 0;
}

const dollars = (nano: bigint): string => `$${Number((Number(nano) / 1e9).toPrecision(3))}`;
