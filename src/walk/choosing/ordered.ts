// As gateway.yaml has them; the credentials of one model share its calls.
import type { HostCandidate } from "../mounted.ts";
import { drawn, shareOf } from "./draw.ts";
import type { PickRule } from "./pick.ts";

export const ordered: PickRule = {
  order(seats, { chance }) {
    const list: HostCandidate[] = [];
    for (let from = 0; from < seats.length;) {
      const { id } = seats[from]!;
      let to = from + 1;
      while (to < seats.length && seats[to]!.id === id) to++;
      if (to - from === 1) list.push(seats[from]!);
      else list.push(...drawn(seats.slice(from, to), chance));
      from = to;
    }
    return list;
  },
  why(seat, seats) {
    const own = seats.filter(({ id }) => id === seat.id);
    return own.length > 1 ? `${shareOf(seat, own)} of its model's calls` : undefined;
  },
};
