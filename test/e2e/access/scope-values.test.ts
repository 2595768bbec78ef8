// Values of scopes that clients choose: on every route with a JSON body, an invalid value gets a
// clear error in the route's protocol and reserves nothing, and any valid value is one member.
import * as fc from "fast-check";
import { afterAll, beforeAll, expect, it } from "vitest";
import { startTestGateway, type TestGateway } from "tollgate/testing";
import { callControl } from "../../../src/admin/socket/control-client.ts";
import { digestKey, mintKey } from "../../../src/lib/api-key.ts";
import { trialCount } from "../../kit/law-effort.ts";
import { until } from "../../kit/wait.ts";

const KEY = mintKey().secret;
const MODEL = "demo/echo";
const messages = [{ role: "user", content: "Hi" }];
const contents = [{ role: "user", parts: [{ text: "Hi" }] }];

/** Routes with a JSON body, of each frontend. */
const ROUTES: readonly (readonly [path: string, body: Record<string, unknown>])[] = [
  ["/v1/chat/completions", { messages }],
  ["/v1/completions", { prompt: "Hi" }],
  ["/v1/responses", { input: "Hi" }],
  ["/v1/messages", { messages, max_tokens: 8 }],
  ["/v1/messages/count_tokens", { messages }],
  [`/v1beta/models/${MODEL}:generateContent`, { contents }],
  [`/v1beta/models/${MODEL}:streamGenerateContent`, { contents }],
  ["/v1/embeddings", { input: "Hi" }],
  ["/v1/rerank", { query: "Hi", documents: ["a"] }],
  ["/v1/moderations", { input: "Hi" }],
  ["/v1/audio/speech", { input: "Hi", voice: "alloy" }],
  ["/v1/images/generations", { prompt: "A gate" }],
];

const yaml = `
frontends: [chat-completions, completions, responses, messages, gemini, embeddings, rerank, moderations, speech, images]
middleware:
  - { use: auth, with: { keys: [{ id: alice, digest: ${digestKey(KEY)} }] } }
  - limits
  - usage
store: memory
scopes:
  probe: { from: ["header:x-probe", "body:/user", "body:/probe/value"], limits: [requests=1000/total], label: hash }
providers: { demo: { use: demo } }
`;

let at: TestGateway;
beforeAll(async () => void (at = await startTestGateway({ yaml })));
afterAll(() => at[Symbol.asyncDispose]());

const send = async (
  path: string,
  body: object,
  headers: Record<string, string> = {},
  { url } = at,
) => {
  const answer = await fetch(url + path, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      authorization: `Bearer ${KEY}`,
      "anthropic-version": "2023-06-01",
      ...headers,
    },
    body: JSON.stringify({ ...(!path.includes(MODEL) && { model: MODEL }), ...body }),
  });
  return { status: answer.status, text: await answer.text() };
};
const rowCount = async (): Promise<number> => {
  const rows = (await callControl(at.stateDir, "ledger.entries", { limit: 1_000 })) as any;
  return rows.items.length;
};

/** Messages of invalid values: of the scope, or of the protocol. Others, such as that of an unknown model, would prove nothing. */
const INVALID =
  /Invalid value of (?:header:x-probe|body:\/user|body:\/probe\/value) for the scope|a member of a scope must have|\/user must be/;

/** Invalid values in the body, and in the header. */
const invalidBody = fc.oneof(
  fc.integer(),
  fc.boolean(),
  fc.array(fc.string(), { maxLength: 3 }),
  fc.dictionary(fc.string(), fc.string(), { maxKeys: 2 }),
  fc.string({ minLength: 257, maxLength: 400 }),
  fc
    .tuple(fc.string(), fc.constantFrom("\0", "\n", "\u001b", "\u0085", "\u2028"), fc.string())
    .map((parts) => parts.join("").slice(-256)),
);
const invalidHeader = fc.oneof(
  fc.integer({ min: 257, max: 2_000 }).map((length) => "v".repeat(length)),
  fc.constantFrom("caf\u00e9", "a\u00a0b", "\u00ff"),
);

it.each(ROUTES)("%s rejects invalid values, and reserves nothing", async (path, body) => {
  await fc.assert(
    fc.asyncProperty(
      fc.oneof(
        invalidBody.map((user) => ({ body: { user }, headers: {} })),
        invalidBody.map((value) => ({ body: { probe: { value } }, headers: {} })),
        invalidHeader.map((value) => ({ body: {}, headers: { "x-probe": value } })),
        // A valid value elsewhere hides no invalid one.
        invalidBody.map((user) => ({ body: { user }, headers: { "x-probe": "good" } })),
      ),
      async (bad) => {
        const before = await rowCount();
        const { status, text } = await send(path, { ...body, ...bad.body }, bad.headers);
        expect([status, text]).toEqual([400, expect.stringMatching(INVALID)]);
        const { error } = JSON.parse(text) as { error: { message: string } };
        expect(error.message.length).toBeLessThan(400);
        expect(await rowCount()).toBe(before);
      },
    ),
    { numRuns: trialCount(12) },
  );
});

const STRANGE = [
  "__proto__",
  "constructor",
  "toString",
  "hasOwnProperty",
  "~probe~60~x",
  "scope:probe",
  "key:alice",
  "requests|total|0|~a~1~b",
  "a=b",
  "a, b",
  "'; --",
  "%00",
  "../..",
];

it("any valid value is one member, and counts once", async () => {
  const seen = new Map<string, number>();
  const valid = fc.oneof(
    fc.constantFrom(...STRANGE),
    fc.string({ unit: "grapheme-ascii", minLength: 1, maxLength: 256 }),
  );
  await fc.assert(
    fc.asyncProperty(valid, fc.constantFrom("header", "user", "both"), async (value, where) => {
      // HTTP removes spaces around the value of a header.
      fc.pre(value.trim() === value);
      const { status } = await send(
        "/v1/chat/completions",
        { messages, ...(where !== "header" && { user: value }) },
        where === "user" ? {} : { "x-probe": value },
      );
      expect(status).toBe(200);
      seen.set(value, (seen.get(value) ?? 0) + 1);
      const shown = (await callControl(at.stateDir, "scopes.show", {
        name: "probe",
        value,
        key: "alice",
      })) as unknown as { limitUsage: { used: string }[] };
      expect(Number(shown.limitUsage[0]!.used)).toBe(seen.get(value));
    }),
    { numRuns: trialCount(60) },
  );
  // Without rows, the tests of rejected requests would prove nothing.
  expect(await rowCount()).toBeGreaterThan(0);
});

it("three scopes add no store command to a request, and one reserve contains all their limits", async () => {
  const commandsWith = async (scopes: string) => {
    await using gateway = await startTestGateway({
      yaml: yaml.replace("store: memory", "").replace(/^scopes:\n.*$/m, scopes),
    });
    for (let i = 0; i < 3; i++) {
      const headers = { "x-probe": "a", "session-id": "s" };
      const sent = await send("/v1/chat/completions", { messages }, headers, gateway);
      expect(sent.status).toBe(200);
    }
    await until(() => gateway.storeCommands.filter((c) => c.do === "settle").length === 3);
    return gateway.storeCommands.filter((c) => c.do !== "price" && c.do !== "heartbeat");
  };
  const plain = await commandsWith("");
  const scoped = await commandsWith(`scopes:
  session: { from: [session], limits: [requests=100/total, tokens=100000/total] }
  probe: { from: ["header:x-probe"], limits: [requests=100/day] }
  whole: { limits: [requests=100/day] }`);
  const namesOf = (all: typeof plain) => all.map((c) => c.do).toSorted();
  expect(namesOf(scoped)).toEqual(namesOf(plain));
  const claims = (all: typeof plain) =>
    all.flatMap((c) => (c.do === "reserve" ? [c.claims.length] : []));
  expect(claims(scoped)).toEqual(claims(plain).map((count) => count + 4));
});
