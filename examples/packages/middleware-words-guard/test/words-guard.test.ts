// Masks, rejects, and stops words in passthrough and translated mode, in every protocol, however a response is split.
import * as fc from "fast-check";
import { call, say, scriptedModel, startGateway, type ModelScript } from "tollgate/testing";
import { testConformance, testHooks } from "tollgate/testing/vitest";
import { describe, expect, test } from "vitest";
import manifest from "../package.json" with { type: "json" };
import plugin, { createReplacer } from "../src/index.ts";

testConformance(plugin, {
  ...manifest.tollgate,
  module: new URL("../src/index.ts", import.meta.url),
});

testHooks(plugin, {
  with: { words: ["tulip", "tulips", "red rose"], mask: "[x]" },
  rewritten: [{ request: "Any Tulips?", expected: "Any [x]?", hidden: "ulip" }],
  streams: [
    {
      modelOutput: "A TULIP, tulips and a red rose.",
      clientOutput: "A [x], [x] and a [x].",
      mustNotContain: "ulip",
    },
  ],
});

testHooks(plugin, {
  with: { words: ["tulip"], action: "stop" },
  allowed: ["Tell me of roses."],
  rejected: [{ request: "Any Tulips?", code: "word_not_allowed" }],
  streams: [
    { modelOutput: "Here is a tulip for you.", mustNotContain: "tulip", endsInError: true },
  ],
});

test("replaces words in chunks as in the whole text, for random words and splits", () => {
  const letter = fc.constantFrom("a", "b", "c", " ", "😀", "é");
  const word = fc.array(letter, { minLength: 1, maxLength: 4 }).map((all) => all.join(""));
  fc.assert(
    fc.property(
      fc.array(word, { minLength: 1, maxLength: 4 }),
      fc.array(fc.array(letter, { maxLength: 6 }), { maxLength: 8 }),
      (words, pieces) => {
        const found = new RegExp(words.toSorted((a, b) => b.length - a.length).join("|"), "giu");
        const flow = createReplacer(found, Math.max(...words.map((one) => one.length)), () => "#");
        const out = [...pieces.map((piece) => flow.push(piece.join(""))), flow.end()];
        const whole = pieces.flat().join("");
        expect(out.join("")).toBe(whole.replace(found, () => "#"));
        for (const piece of out) expect(piece.isWellFormed()).toBe(true);
      },
    ),
    { numRuns: 2_000 },
  );
});

/** Path and body of each client protocol. */
const user = (content: string) => [{ role: "user", content }];
const CLIENTS = {
  "chat-completions": ["/v1/chat/completions", { messages: user("Hi") }],
  messages: ["/v1/messages", { messages: user("Hi"), max_tokens: 99 }],
  responses: ["/v1/responses", { input: "Hi" }],
  gemini: ["/v1beta/models/", { contents: [{ role: "user", parts: [{ text: "Hi" }] }] }],
} as const;
type Client = keyof typeof CLIENTS;
const PROVIDERS = {
  chat: { use: "openai-compatible", with: { base_url: "${env:UPSTREAM}/v1" } },
  messages: { use: "anthropic-compatible", with: { base_url: "${env:UPSTREAM}" } },
};

const house = (options: object) =>
  startGateway({
    plugins: { "words-guard": plugin },
    config: {
      frontends: Object.keys(CLIENTS),
      middleware: ["door", { use: "words-guard", with: options }],
      retries: { per_target: 1, total: 1 },
      providers: PROVIDERS,
    },
  });

async function heard(url: string, client: Client, model: string, stream: boolean): Promise<string> {
  const [path, body] = CLIENTS[client];
  const verb = stream ? ":streamGenerateContent?alt=sse" : ":generateContent";
  const at = client === "gemini" ? `${path}${encodeURIComponent(model)}${verb}` : path;
  const answer = await fetch(url + at, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      "anthropic-version": "2023-06-01",
      [client === "messages" ? "x-api-key" : "authorization"]:
        client === "messages" ? "x" : "Bearer x",
    },
    body: JSON.stringify({ ...body, ...(client !== "gemini" && { model, stream }) }),
  });
  // A protocol without an error event closes the connection.
  let got = "";
  try {
    for await (const piece of answer.body!) got += Buffer.from(piece).toString();
  } catch {
    got += "\n(cut: it was stopped at a word that is not allowed)";
  }
  return got;
}

/** Joins all strings in the JSON of a response: all text that a client could read. */
function words(body: string): string {
  const parts = body.split("\n").flatMap((line) => /^(?:data: )?(\{.*)$/s.exec(line)?.[1] ?? []);
  const all: string[] = [];
  // Members that every event of a stream repeats.
  const repeated = new Set(["role", "modelVersion", "responseId", "finishReason"]);
  const read = (name: string, value: unknown) => (
    typeof value === "string" && !repeated.has(name) && all.push(value),
    value
  );
  for (const part of body.startsWith("{") ? [body] : parts) JSON.parse(part, read);
  return all.join("");
}

describe.each(Object.keys(CLIENTS) as Client[])("for a client of %s", (client) => {
  // Words split into two chunks, and into one chunk per letter, in one block or in several.
  const letters = (text: string): ModelScript =>
    [...text].slice(1).reduce((made, one) => made.say(one), say(text[0]!));

  test.each(Object.keys(PROVIDERS))(
    "sends no text after a blocked word, from %s",
    async (provider) => {
      await using at = await house({ words: ["blue tulip"], action: "stop" });
      const said = "I give a blue tulip to STRANGER";
      for (const speech of [say(said), letters(said), say(said.slice(0, 16)).say(said.slice(16))])
        for (const stream of [true, false]) {
          at.upstream.setRoutes(scriptedModel(speech, ["model"]));
          const body = await heard(at.url, client, `${provider}/model`, stream);
          expect(body).toContain("stopped at a word that is not allowed");
          expect(words(body)).not.toMatch(/tulip|STRANGER/);
        }
    },
  );

  test.each(Object.keys(PROVIDERS))("sends no part of a masked word, from %s", async (provider) => {
    await using at = await house({ words: ["blue tulip"] });
    const said = "I give a Blue Tulip to you";
    for (const speech of [say(said), ...(provider === "chat" ? [letters(said)] : [])])
      for (const stream of [true, false]) {
        at.upstream.setRoutes(scriptedModel(speech, ["model"]));
        const body = await heard(at.url, client, `${provider}/model`, stream);
        expect(words(body)).toMatch(/masked.* to.* you/s);
        expect(words(body)).not.toMatch(/blue|tulip/i);
      }
    // In tool call arguments, in which a letter may be escaped.
    for (const stream of [true, false]) {
      at.upstream.setRoutes(
        scriptedModel(call("send", '{"flower":"a blue t\\u0075lip"}'), ["model"]),
      );
      const body = await heard(at.url, client, `${provider}/model`, stream);
      expect(body).toContain("[masked]");
      expect(words(body)).not.toMatch(/u0075|tulip/);
    }
  });
});
