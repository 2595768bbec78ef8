// Prompt caches: two requests of one conversation that are prefix-equal at the client leave
// prefix-equal, in every ordered pair of protocols. A provider caches tools first, then
// instructions, then messages.
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  getFault,
  type Body,
  type ChatRequest,
  type ClientHalf,
  type Operation,
  type Protocol,
} from "tollgate/plugin";
import { createCallContext, deepFreeze, encodeOutgoing } from "tollgate/testing";
import { requests } from "./generators/arbitrary.ts";
import { cachedText } from "./generators/cached-text.ts";
import { chats } from "./generators/codecs.ts";
import { trialCount } from "../kit/law-effort.ts";

const names = Object.keys(chats);
const pairs = names.flatMap((from) => names.map((to): [string, string] => [from, to]));
const RUNS = trialCount(200);

/** The body in a protocol. Undefined if the protocol rejects the request. */
function sent({ id, client }: Protocol<"chat">, request: ChatRequest): Body | undefined {
  const of = createCallContext({ model: request.model, stream: request.stream });
  try {
    const { body } = encodeOutgoing(
      client as ClientHalf<Operation>,
      deepFreeze(structuredClone(request)),
      of,
    );
    const beside = id === "gemini" ? { model: request.model, stream: request.stream } : {};
    return JSON.parse(JSON.stringify({ ...body, ...beside })) as Body;
  } catch (error) {
    if (getFault(error)?.kind === "unsupported") return undefined;
    throw error;
  }
}

/** Two requests of one conversation: the second one has more turns. */
const conversations = requests({ media: true, knobs: true, interjections: true }).chain((whole) => {
  const ends = whole.turns.flatMap(({ role }, i) => (role === "assistant" && i > 0 ? [i] : []));
  return fc.constantFrom(...ends, whole.turns.length).map((end) => ({
    earlier: { ...whole, turns: whole.turns.slice(0, end) },
    later: whole,
  }));
});

describe.each(pairs)("from %s to %s", (from, to) => {
  it("requests that are prefix-equal at the client leave prefix-equal", () => {
    let compared = 0;
    fc.assert(
      fc.property(conversations, ({ earlier, later }) => {
        const written = [earlier, later].map((one) => sent(chats[from]!, one));
        if (!written[0] || !written[1]) return;
        const [first, second] = written.map((body) => cachedText(from, body!));
        if (!second!.whole.startsWith(first!.prefix)) return;
        const left = written.map((body) =>
          sent(
            chats[to]!,
            chats[from]!.server!.decodeRequest(deepFreeze(body!), "generate") as ChatRequest,
          ),
        );
        if (!left[0] || !left[1]) return;
        compared++;
        const [before, after] = left.map((body) => cachedText(to, body!));
        expect(after!.whole.slice(0, before!.prefix.length)).toBe(before!.prefix);
        // A provider may hash the whole body, so members keep their order too.
        const order = Object.keys(left[0]).filter((name) => name in left[1]!);
        expect(Object.keys(left[1]).filter((name) => name in left[0]!)).toEqual(order);
      }),
      { numRuns: RUNS },
    );
    expect(compared).toBeGreaterThan(0);
  });
});
