import { drawn, shareOf } from "./draw.ts";
import type { PickRule } from "./pick.ts";

export const weighted: PickRule = {
  order: (seats, { chance }) => drawn(seats, chance),
  why: (seat, seats) => `${shareOf(seat, seats)} of the calls`,
};
