// Keeps each conversation at one candidate, because its prompt is cached there. The candidate is
// chosen by rendezvous hashing: the highest hash of the conversation with a candidate's name wins.
// No state is needed, all processes and gateways agree, and a target that is added or removed moves
// only its own share.
import { hash } from "node:crypto";
import type { HostCandidate } from "../exchange/mounted.ts";
import { conversationIdOf } from "../exchange/conversation-id.ts";
import { weightedShuffle, formatShare } from "./weighted-shuffle.ts";
import type { RoutingRule } from "./routing-rule.ts";

/** Number of bytes of a hash that fit exactly into a double. */
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
