// Requests to a model that supports a part of JSON Schema, and citations in its responses.
import type { JsonObject } from "tollgate/plugin";
import { gemini } from "tollgate/protocols/gemini";
import { toOpenApiSubset } from "../../../src/protocols/gemini/client/openapi-schema.ts";
import { startBackend, startTestServices } from "../../kit/test-services.ts";
import { chats } from "../../protocols/generators/codecs.ts";
import type { Driver, Outcome } from "./way.ts";

type Client = keyof typeof FUNCTION;
const hi = [{ role: "user", content: "Hi" }];
const FUNCTION = {
  "chat-completions": (parameters: object) => ({
    messages: hi,
    tools: [{ type: "function", function: { name: "f", parameters } }],
  }),
  messages: (input_schema: object) => ({
    max_tokens: 9,
    messages: hi,
    tools: [{ name: "f", input_schema }],
  }),
  responses: (parameters: object) => ({
    input: "Hi",
    tools: [{ type: "function", name: "f", parameters, strict: false }],
  }),
};

/** Result of a request with this response. */
async function asked(
  from: Client,
  body: object,
  candidate: object = {},
): Promise<{ outcome: Outcome; text: string }> {
  await using up = await startBackend((_req, res) => {
    const content = { role: "model", parts: [{ text: "Hello" }] };
    const said = {
      candidates: [{ content, finishReason: "STOP", index: 0, ...candidate }],
      usageMetadata: { promptTokenCount: 1, candidatesTokenCount: 1, totalTokenCount: 2 },
    };
    res.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(said));
  });
  const to = chats[from]!;
  await using s = await startTestServices({
    frontend: to,
    providers: { p: { endpoints: [{ protocol: gemini(), base: up.base, auth: "none" }] } },
  });
  const got = await s.ask({ model: "p/gemini-2.0-flash", ...body });
  const text = await got.text();
  return {
    outcome: got.status === 200 ? "passes" : { status: got.status, text, to: to as never },
    text,
  };
}

const declared = (schema: (n: number) => JsonObject): Driver =>
  Object.fromEntries(
    (Object.keys(FUNCTION) as Client[]).map((from) => [
      `from ${from}`,
      { drive: async (n: number) => (await asked(from, FUNCTION[from](schema(n)))).outcome },
    ]),
  );

/**
 * This many levels, all except for the last two by reference: without references, the body would be
 * nested too deeply.
 */
function levels(n: number): JsonObject {
  const within = (inside: JsonObject): JsonObject => ({
    type: "object",
    properties: { a: inside },
  });
  const $defs: { [name: string]: JsonObject } = { l2: within({ type: "string" }) };
  for (let i = 3; i < n; i++) $defs[`l${i}`] = within({ $ref: `#/$defs/l${i - 1}` });
  return { ...within({ $ref: `#/$defs/l${n - 1}` }), $defs };
}

const parts = (n: number): JsonObject => ({
  type: "object",
  properties: Object.fromEntries(Array.from({ length: n - 1 }, (_, i) => [`p${i}`, {}])),
});

const TIMES = 20;
/** The target of a reference, used many times, next to text that appears once. */
const repeated = (letters: number, beside: number): JsonObject => ({
  type: "object",
  description: "x".repeat(beside),
  properties: Object.fromEntries(
    Array.from({ length: TIMES }, (_, i) => [`p${i}`, { $ref: "#/$defs/a" }]),
  ),
  $defs: { a: { type: "string", description: "x".repeat(letters) } },
});
/** Counted by the schema's own parser. */
function spelledBy(schema: JsonObject): number {
  const purse = { remaining: 1e9 };
  toOpenApiSubset(schema, "tools.f", purse, () => {});
  return 1e9 - purse.remaining;
}
/** Literal characters count twice, so each reduces the rest by one. */
function spelled(n: number): JsonObject {
  const letters = Math.ceil(n / (TIMES - 2)) + 10;
  return repeated(letters, spelledBy(repeated(letters, 0)) - n);
}

const TEXT = 1024 * 1024 + 100;
/** Text that is found after this many bytes were searched for other text that is not there. */
async function cited(n: number): Promise<Outcome> {
  const before = n - 1 - 7 * TEXT;
  const text = "a".repeat(before) + "words" + "a".repeat(TEXT - before - 5);
  const support = (said: string, chunk = 0) => ({
    segment: { startIndex: 0, endIndex: 2, text: said },
    groundingChunkIndices: [chunk],
  });
  const candidate = {
    content: { role: "model", parts: [{ text }] },
    groundingMetadata: {
      groundingChunks: ["a", "b"].map((title) => ({
        web: { uri: `http://${title}.test/`, title },
      })),
      groundingSupports: [
        ...Array.from({ length: 7 }, () => support("nowhere")),
        support("words"),
        support("words", 1),
      ],
    },
  };
  const { outcome, text: told } = await asked("chat-completions", { messages: hi }, candidate);
  if (outcome !== "passes" || !told.includes("http://a.test/")) return { fault: undefined };
  return told.includes("http://b.test/") ? "passes" : "beyond";
}

export const schemas = {
  schemaLevels: declared(levels),
  schemaParts: declared(parts),
  schemaExpansion: declared(spelled),
  citationSearch: { "in a whole answer": { drive: cited } },
} satisfies { readonly [name: string]: Driver };
