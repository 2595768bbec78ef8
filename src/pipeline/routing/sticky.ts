// One conversation stays where it is, because that is where its prompt is cached. The place is a hash of the conversation with each
// name that it may go to, and the highest wins (rendezvous): there is nothing to remember, all processes and gateways agree, and a
// target that comes or goes moves its own share and no other.
import { hash } from "node:crypto";
import type { HostCandidate } from "../exchange/mounted.ts";
import { conversationIdOf } from "../exchange/conversation-id.ts";
import { weightedShuffle, formatShare } from "./weighted-shuffle.ts";
import type { RoutingRule } from "./routing-rule.ts";

/** So many bits of a hash are a number that a double holds. */
const HASH_BYTES = 6;
const HASH_RANGE = 2 ** (8 * HASH_BYTES);

export const sticky: RoutingRule = {
  order(candidates, { x, frontend, random }) {
    const conversation = conversationIdOf(x, frontend.server);
    return weightedShuffle(
      candidates,
      conversation === undefined ? random : (seat) => rendezvousHash(conversation, seat),
    );
  },
  explain: (candidate, candidates) => `${formatShare(candidate, candidates)} of the conversations`,
};

function rendezvousHash(conversation: string, { id, credential }: HostCandidate): number {
  const mixed = hash("sha256", `${conversation}\n${id}\n${credential}`, "buffer");
  return (mixed.readUIntBE(0, HASH_BYTES) + 0.5) / HASH_RANGE;
}
