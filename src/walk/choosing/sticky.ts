// One conversation stays where it is, because that is where its prompt is cached. The place is a hash of the conversation with each
// name that it may go to, and the highest wins (rendezvous): there is nothing to remember, all processes and gateways agree, and a
// target that comes or goes moves its own share and no other.
import { hash } from "node:crypto";
import type { HostCandidate } from "../mounted.ts";
import { conversationOf } from "./conversation.ts";
import { drawn, shareOf } from "./draw.ts";
import type { PickRule } from "./pick.ts";

/** So many bits of a hash are a number that a double holds. */
const BYTES = 6;
const ONE = 2 ** (8 * BYTES);

export const sticky: PickRule = {
  order(seats, { x, frontend, chance }) {
    const conversation = conversationOf(x, frontend.server);
    return drawn(seats, conversation === undefined ? chance : (seat) => place(conversation, seat));
  },
  why: (seat, seats) => `${shareOf(seat, seats)} of the conversations`,
};

function place(conversation: string, { id, credential }: HostCandidate): number {
  const mixed = hash("sha256", `${conversation}\n${id}\n${credential}`, "buffer");
  return (mixed.readUIntBE(0, BYTES) + 0.5) / ONE;
}
