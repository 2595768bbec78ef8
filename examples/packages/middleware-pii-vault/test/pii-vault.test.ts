// Personal data is replaced in requests and restored in responses: streaming or not, in tool call arguments, however it is split.
import * as fc from "fast-check";
import { call, say, scriptedModel, startGateway } from "tollgate/testing";
import { testConformance, testHooks } from "tollgate/testing/vitest";
import { expect, test } from "vitest";
import manifest from "../package.json" with { type: "json" };
import plugin, { createVault } from "../src/index.ts";

testConformance(plugin, {
  ...manifest.tollgate,
  module: new URL("../src/index.ts", import.meta.url),
});

testHooks(plugin, {
  with: { persons: ["Ann Smith"] },
  allowed: ["Hello"],
  rewritten: [
    { request: "I am ann@example.org.", expected: "I am [EMAIL_1].", hidden: "example.org" },
    { request: "Ann Smith, +49 30 1234567", expected: "[PERSON_2], [PHONE_1]", hidden: "1234567" },
    { request: "Card 4111 1111 1111 1111", expected: "[CARD_1]", hidden: "4111" },
    {
      request: {
        system: "Serve b@example.org.",
        turns: ["a@example.org", "b@example.org?", "No."],
      },
      expected: "[EMAIL_1]?",
      hidden: "@example",
    },
  ],
  streams: [
    {
      request: "I am ann@example.org and Ann Smith.",
      modelOutput: "Dear [PERSON_2], [EMAIL_1] is yours; [EMAIL_9] and [x] are not.",
      clientOutput: "Dear Ann Smith, ann@example.org is yours; [EMAIL_9] and [x] are not.",
    },
  ],
});

test("restores every replaced value of random texts, and sends no such value", () => {
  const word = fc.constantFrom(
    "ann@example.org",
    "b+c@mail.example.com",
    "Ann Smith",
    "Zoë",
    "4111-1111-1111-1111",
  );
  const other = fc.constantFrom("Hello ", ", ", "[", "]", "[EMAIL_", " 12 ", "\n", '"', "\\");
  fc.assert(
    fc.property(fc.array(fc.oneof(word, other), { maxLength: 12 }), (parts) => {
      const vault = createVault(["email", "card", "iban", "phone"], ["Ann Smith", "Zoë"]);
      const text = parts.join(" ");
      const hidden = vault.hide(text);
      expect(vault.restore(hidden)).toBe(text);
      expect(hidden).not.toMatch(/@|Smith|Zoë|4111/);
      // The second time, the placeholders are the same.
      expect(vault.hide(text)).toBe(hidden);
    }),
    { numRuns: 1_000 },
  );
});

const house = () =>
  startGateway({
    plugins: { "pii-vault": plugin },
    config: {
      middleware: ["door", { use: "pii-vault", with: { persons: ['Ann "Zoë" Smith'] } }],
      providers: { up: { use: "openai-compatible", with: { base_url: "${env:UPSTREAM}/v1" } } },
    },
  });

test.each([true, false])(
  "calls the client's tool with the original values, streamed: %s",
  async (stream) => {
    await using at = await house();
    at.upstream.setRoutes(
      scriptedModel(call("send", { to: "[EMAIL_1]", name: "[PERSON_2]" }), ["model"]),
    );
    const got = await at.ask("up/model", 'ann@example.org, Ann "Zoë" Smith', { stream });
    const parts = got.body
      .split("\n")
      .flatMap((line) => /^(?:data: )?(\{.*)$/.exec(line)?.[1] ?? []);
    const args = parts
      .map((part) => JSON.parse(part).choices?.[0])
      .map((one) => (one?.delta ?? one?.message)?.tool_calls?.[0]?.function?.arguments ?? "");
    expect(JSON.parse(args.join(""))).toEqual({ to: "ann@example.org", name: 'Ann "Zoë" Smith' });
  },
);

test("replaces values in a tool call that the client sends back, also in escaped letters", async () => {
  await using at = await house();
  const spoken = '{"to":"ann\\u0040example.org"}';
  const tool_calls = [
    { id: "c1", type: "function", function: { name: "send", arguments: spoken } },
  ];
  await at.ask("up/model", "", {
    body: {
      messages: [
        { role: "user", content: "Write." },
        { role: "assistant", content: null, tool_calls },
        { role: "tool", tool_call_id: "c1", content: "Sent to ann@example.org" },
      ],
    },
  });
  const sent = at.upstream.requests
    .filter(({ method }) => method === "POST")
    .map(({ body }) => `${body}`)
    .join("");
  expect(sent).toContain("[EMAIL_1]");
  expect(sent).not.toMatch(/example\.org|u0040/);
});

test("requests share no placeholders", async () => {
  await using at = await house();
  at.upstream.setRoutes(scriptedModel(say("[EMAIL_1]"), ["model"]));
  const [one, two] = await Promise.all([
    at.ask("up/model", "a@example.org"),
    at.ask("up/model", "Hi"),
  ]);
  expect([one.text, two.text]).toEqual(["a@example.org", "[EMAIL_1]"]);
});

test("rejects an image, because it cannot inspect images", async () => {
  await using at = await house();
  const image_url = { url: "data:image/png;base64,iVBORw0KGgo=" };
  const content = [{ type: "image_url", image_url }];
  const got = await at.ask("up/model", "", { body: { messages: [{ role: "user", content }] } });
  expect([got.status, got.error?.code]).toEqual([403, "text_only"]);
});
