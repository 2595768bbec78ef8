// Clients with the same display name: no data of one (results of Idempotency-Keys, response items,
// usage, conversations, cached responses) is accessible to another, whatever their IDs are.
import * as fc from "fast-check";
import { afterAll, beforeAll, expect, it } from "vitest";
import { defineMiddleware, type Exchange, type Identity } from "tollgate/plugin";
import { jsonResponse, say, startGateway } from "tollgate/testing";
import cache from "../../../examples/packages/middleware-exact-cache/src/index.ts";
import { conversationIdOf } from "../../../src/pipeline/exchange/conversation-id.ts";
import { trialCount } from "../../kit/law-effort.ts";

/** Uses a secret as the identity that it encodes. */
const door = defineMiddleware({
  api: 1,
  name: "door",
  summary: "Lets every client in under the id that its key encodes",
  sends: "nowhere",
  setup: () => ({
    admit(x, secret = "") {
      x.identify(JSON.parse(Buffer.from(secret, "base64url").toString()) as Identity);
    },
  }),
});

let at: Awaited<ReturnType<typeof startGateway>>;
beforeAll(async () => {
  let asked = 0;
  at = await startGateway({
    plugins: { door, "exact-cache": cache },
    upstream: {
      "GET /*": jsonResponse({ object: "list", data: [{ id: "model", object: "model" }] }),
      "POST /*": (one) => say(`Answer ${++asked}`).usage({ input: 7, output: 2 }).toResponse(one),
    },
    config: {
      frontends: ["chat-completions", "responses", "usage"],
      middleware: ["door", { use: "exact-cache", with: {} }],
      providers: {
        up: { use: "openai-compatible", with: { base_url: "${env:UPSTREAM}/v1", api_key: "c" } },
      },
    },
  });
});
afterAll(() => at?.[Symbol.asyncDispose]());

/** IDs that could be confused with each other, or with a joined form. */
const id = fc.oneof(
  fc.constantFrom(
    "k",
    "k\n",
    "k m",
    "K",
    "jwt:a:b",
    "jwt:a:b:c",
    "admin:owner::shell",
    "anonymous",
    "",
  ),
  fc.stringMatching(/^[ak\n :"]{1,4}$/),
);
const NAME = "ann@example.com";
const secretOf = (of: string) =>
  Buffer.from(JSON.stringify({ id: of, name: NAME, labels: { team: "one" } })).toString(
    "base64url",
  );

const post = async (who: string, path: string, body: object, headers: object = {}) => {
  const res = await fetch(`${at.url}${path}`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${secretOf(who)}`,
      "content-type": "application/json",
      ...headers,
    },
    body: JSON.stringify(body),
  });
  return {
    status: res.status,
    cache: res.headers.get("x-tollgate-cache")?.split(";")[0],
    body: (await res.json()) as any,
  };
};

it("share no stored object", async () => {
  let n = 0;
  await fc.assert(
    fc.asyncProperty(fc.uniqueArray(id, { minLength: 2, maxLength: 3 }), async (people) => {
      const words = `Question ${++n}`;
      const chat = { model: "up/model", messages: [{ role: "user", content: words }] };
      const once = { "idempotency-key": `i${n}`, "cache-control": "no-store" };
      for (const who of people)
        expect((await post(who, "/v1/chat/completions", chat, once)).status).toBe(200);
      for (const who of people) {
        const again = await post(who, "/v1/chat/completions", chat, once);
        expect([again.status, again.body.error.code]).toEqual([409, "idempotency_done"]);
      }
      const said = new Set<string>();
      for (const who of people) {
        const answer = await post(who, "/v1/chat/completions", chat);
        expect(answer.cache).toBe("miss");
        said.add(answer.body.choices[0].message.content);
        expect((await post(who, "/v1/chat/completions", chat)).cache).toBe("hit");
      }
      expect(said.size).toBe(people.length);
      const items = new Map<string, string>();
      for (const who of people) {
        const made = await post(who, "/v1/responses", { model: "up/model", input: words });
        items.set(who, made.body.output[0].id);
      }
      for (const who of people)
        for (const [owner, item] of items) {
          const input = [
            { type: "item_reference", id: item },
            { role: "user", content: "Go on." },
          ];
          const { status } = await post(who, "/v1/responses", { model: "up/model", input });
          expect([who, owner, status]).toEqual([who, owner, who === owner ? 200 : 400]);
        }
    }),
    { numRuns: trialCount(15) },
  );
});

it("have separate conversations, although these start with the same text", () => {
  const x = (of: string, session: string) =>
    ({
      identity: { id: of, name: NAME },
      headers: { "session-id": session },
      body: {},
    }) as never as Exchange;
  const session = fc.stringMatching(/^[ak\n :"]{1,4}$/);
  fc.assert(
    fc.property(id, session, id, session, (a, s, b, t) => {
      const [one, other] = [
        conversationIdOf(x(a, s), undefined),
        conversationIdOf(x(b, t), undefined),
      ];
      expect(one === other).toBe(a === b && s === t);
    }),
    { numRuns: trialCount(2_000) },
  );
});
