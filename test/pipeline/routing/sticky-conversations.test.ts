// A conversation stays at its prompt cache: which ones move when a target is added, removed, or in
// cooldown, and that processes agree.
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { chatCompletions } from "tollgate/protocols/chat-completions";
import { messages } from "tollgate/protocols/messages";
import { responses } from "tollgate/protocols/responses";
import type { Protocol } from "tollgate/plugin";
import { conversationIdOf } from "../../../src/pipeline/exchange/conversation-id.ts";
import {
  type RoutingRuleInputs,
  applyRoutingRule,
  ROUTING_RULES,
} from "../../../src/pipeline/routing/routing-rules.ts";
import type { HostCandidate } from "../../../src/pipeline/exchange/mounted.ts";
import { startBackend, startTestServices } from "../../kit/test-services.ts";
import { createToyProtocol } from "../toy-protocol.ts";
import { trialCount } from "../../kit/law-effort.ts";

const PROTOCOLS: readonly Protocol<any>[] = [chatCompletions(), messages(), responses()];
const asked = (body: object, headers: object = {}, id = "k1") =>
  ({ identity: { id }, body, headers, size: { bytes: 0, input: 0 } }) as never;
const seat = (id: string, share = 1): HostCandidate =>
  ({ id, credential: "c", protocol: "x", mounted: { share } }) as never;
const inputs = (session: string): RoutingRuleInputs => ({
  x: asked({}, { "session-id": session }),
  frontend: { server: undefined } as never,
  facts: { features: [] },
  operationSpec: {} as never,
  outputHistory: { p95: () => undefined },
  random: () => 0.5,
  estimateLatency: () => 0,
});
const orderOf = (seats: readonly HostCandidate[], session: string) =>
  applyRoutingRule(seats, ROUTING_RULES.sticky, inputs(session)).map(({ id }) => id);

describe("rendezvous", () => {
  const names = fc.uniqueArray(fc.stringMatching(/^[a-z]{1,6}$/), { minLength: 2, maxLength: 8 });
  const sessions = fc.array(fc.string({ minLength: 1, maxLength: 30 }), {
    minLength: 1,
    maxLength: 20,
  });

  it("is the same wherever it is computed, in any order of gateway.yaml", () => {
    fc.assert(
      fc.property(names, sessions, (ids, all) => {
        const seats = ids.map((id) => seat(id));
        for (const session of all)
          expect(orderOf(seats.toReversed(), session)).toEqual(orderOf(seats, session));
      }),
    );
  });

  it("moves only the share of a removed candidate, and restores it when the candidate returns", () => {
    fc.assert(
      fc.property(names, sessions, fc.nat(), (ids, all, nth) => {
        const gone = ids[nth % ids.length]!;
        for (const session of all) {
          const before = orderOf(
            ids.map((id) => seat(id)),
            session,
          );
          const after = orderOf(
            ids.filter((id) => id !== gone).map((id) => seat(id)),
            session,
          );
          expect(after).toEqual(before.filter((id) => id !== gone));
        }
      }),
    );
  });

  it("distributes conversations by weight, within five standard deviations", () => {
    const weights = [1, 2, 7];
    const seats = weights.map((weight, i) => seat(`${i}`, weight / 10));
    const count = [0, 0, 0];
    const runs = 10_000;
    for (let i = 0; i < runs; i++) count[Number(orderOf(seats, `s${i}`)[0])]!++;
    weights.forEach((weight, i) => {
      const share = weight / 10;
      const bound = 5 * Math.sqrt((share * (1 - share)) / runs);
      expect(Math.abs(count[i]! / runs - share)).toBeLessThan(bound);
    });
  });
});

/** A conversation after a number of turns in each protocol, with moving cache marks. */
const mark = { cache_control: { type: "ephemeral" } };
const turns = (system: string, first: string, n: number) => ({
  "chat-completions": {
    tools: [{ type: "function", function: { name: "f", parameters: {} } }],
    messages: [
      { role: "system", content: system },
      { role: "user", content: first },
      ...Array.from({ length: n }, (_, i) => ({
        role: i % 2 ? "user" : "assistant",
        content: `${i}`,
      })),
    ],
  },
  messages: {
    max_tokens: 10,
    system,
    messages: [
      { role: "user", content: n === 0 ? [{ type: "text", text: first, ...mark }] : first },
      ...Array.from({ length: n }, (_, i) => ({
        role: i % 2 ? "user" : "assistant",
        content: `${i}`,
      })),
    ],
  },
  responses: {
    instructions: system,
    input:
      n === 0 && first !== ""
        ? [{ role: "user", content: first }]
        : [
            { role: "user", content: first },
            ...Array.from({ length: n }, (_, i) => ({
              role: i % 2 ? "user" : "assistant",
              content: `${i}`,
            })),
          ],
  },
});

describe.each(PROTOCOLS.map((protocol) => [protocol.id, protocol.server!] as const))(
  "a conversation in %s",
  (id, server) => {
    const of = (body: object, headers?: object, key?: string) =>
      conversationIdOf(asked(body, headers, key), server);
    const body = (system: string, first: string, n: number) => (turns(system, first, n) as any)[id];

    it("is the same from its first turn to its last, and differs from others", () => {
      fc.assert(
        fc.property(fc.string(), fc.string(), fc.nat(6), (system, first, n) => {
          const one = of(body(system, first, 0));
          expect(of(body(system, first, n))).toBe(one);
          expect(of(body(`${system}.`, first, n))).not.toBe(one);
          expect(of(body(system, `${first}.`, n))).not.toBe(one);
          expect(of(body(system, first, n), {}, "k2")).not.toBe(one);
        }),
        { numRuns: trialCount(40) },
      );
    });

    it("is primarily identified by the client's own ID", () => {
      const plain = body("s", "f", 0);
      const one = of(plain, { "x-claude-code-session-id": "abc" });
      expect(of(body("other", "words", 3), { "x-claude-code-session-id": "abc" })).toBe(one);
      expect(of(plain, { "session-id": "abd" })).not.toBe(one);
      expect(of(plain, { "session-id": "x".repeat(300) })).toBe(of(plain));
      const named =
        id === "messages"
          ? (name: string) => ({ metadata: { user_id: `user_1_account_2_session_${name}` } })
          : (name: string) => ({ prompt_cache_key: name });
      const two = of({ ...plain, ...named("12345678-a") });
      expect(of({ ...body("other", "words", 2), ...named("12345678-a") })).toBe(two);
      expect(of({ ...plain, ...named("12345678-b") })).not.toBe(two);
    });

    it("is read up to a limit, however deep and long it is", () => {
      let deep: unknown = "x";
      for (let i = 0; i < 900; i++) deep = [deep];
      const many = Array.from({ length: 100_000 }, () => ({ a: 1 }));
      Object.defineProperty(many, 99_999, {
        get: () => {
          throw new Error("it was read to its end");
        },
      });
      for (const first of [deep, "y".repeat(8_000_000), many])
        expect(of(body("s", first as string, 0))).toHaveLength(32);
    });
  },
);

/**
 * Each credential has its own cache: a prompt whose start was read before is a hit for that part.
 */
async function caching() {
  const seen = new Map<string, Set<string>>();
  const counts = { read: 0, hit: 0 };
  const up = await startBackend((req, res) => {
    const cache = seen.get(String(req.headers["x-key"])) ?? new Set();
    seen.set(String(req.headers["x-key"]), cache);
    const turns = JSON.parse(req.body).text.split("|") as string[];
    for (let i = turns.length; i > 0; i--)
      if (cache.has(turns.slice(0, i).join("|"))) {
        counts.hit += i;
        break;
      }
    counts.read += turns.length;
    cache.add(turns.join("|"));
    res.writeHead(200, { "content-type": "application/json" });
    res.end('{"say":"x","end":"stop","usage":{"input":1,"output":1}}');
  });
  return { up, seen, counts };
}

const credentials = (weights: Record<string, number>) =>
  Object.entries(weights).map(([name, weight]) => ({
    name,
    fields: { api_key: name },
    weight,
    models: undefined,
    zdr: undefined,
  }));

describe("with a prompt cache per credential", () => {
  const talking = async (pick: "weighted" | "sticky") => {
    const cache = await caching();
    const protocol = createToyProtocol();
    await using up = cache.up;
    await using s = await startTestServices({
      frontend: {
        ...protocol,
        server: {
          ...protocol.server!,
          conversationKey: ({ text }) => ({ prefix: [(text as string).split("|")[0]!] }),
        },
      },
      providers: {
        p: {
          endpoints: [
            {
              protocol,
              base: up.base,
              auth: { header: "x-key", field: "api_key" },
              sessionAffinity: { header: "x-session" },
            },
          ],
          credentials: credentials({ a: 1, b: 1, c: 1 }),
        } as never,
      },
      models: { any: ["p/m"] },
      pick,
    });
    const where = new Map<string, Set<string>>();
    const ask = async (name: string, n: number) => {
      const text = [name, ...Array.from({ length: n }, (_, i) => `${i}`)].join("|");
      const before = up.asked.length;
      await (await s.ask({ model: "any", text })).text();
      const { headers } = up.asked[before]!;
      const at = where.get(name) ?? new Set();
      where.set(name, at.add(String(headers["x-key"])));
      return headers;
    };
    for (let n = 0; n < 12; n++) for (let i = 0; i < 9; i++) await ask(`c${i}`, n);
    return { ...cache.counts, where, told: up.asked.map(({ headers }) => headers["x-session"]) };
  };

  it("its turns hit the cache under sticky, and seldom under weighted", async () => {
    const weighted = await talking("weighted");
    const sticky = await talking("sticky");
    expect([...sticky.where.values()].every((at) => at.size === 1)).toBe(true);
    // All of a conversation except its newest turn.
    expect(sticky.read - sticky.hit).toBe(9 * 12);
    expect(weighted.hit / weighted.read).toBeLessThan(sticky.hit / sticky.read - 0.05);
    // A provider only learns which of them belong together.
    expect(new Set(weighted.told)).toEqual(new Set([undefined]));
    expect(new Set(sticky.told).size).toBe(9);
    for (const told of sticky.told) expect(told).toMatch(/^[0-9a-f]{32}$/);
  });
});
