// The official SDKs as readers of streams: each collects the text of a response from a stream, or
// throws.
import assert from "node:assert/strict";
import Anthropic from "@anthropic-ai/sdk";
import Anthropic0 from "anthropic-sdk-0";
import OpenAI from "openai";
import { GOOGLE_SDKS, kept } from "./google-sdks.ts";

type Reads = (stream: string) => Promise<string | undefined> | string | undefined;

/** Every event that an SDK receives before the end of the stream. */
const fetched = (stream: string) => async () =>
  new Response(stream, { headers: { "content-type": "text/event-stream" } });

const openai = (stream: string) =>
  new OpenAI({ apiKey: "k", maxRetries: 0, fetch: fetched(stream) });
const ask = { model: "provider/model", max_tokens: 9 };
const messages = [{ role: "user" as const, content: "Hi" }];

async function inMessages(stream: string, SDK: typeof Anthropic): Promise<string> {
  const client = new SDK({ apiKey: "k", maxRetries: 0, fetch: fetched(stream) });
  const { content, stop_reason: reason } = await client.messages
    .stream({ ...ask, messages })
    .finalMessage();
  assert.ok(reason);
  return content.map((block) => (block.type === "text" ? block.text : "")).join("");
}

async function inChat(stream: string): Promise<string> {
  const { choices } = await openai(stream)
    .chat.completions.stream({ model: ask.model, messages })
    .finalChatCompletion();
  assert.ok(choices[0]!.finish_reason);
  return choices[0]!.message.content ?? "";
}

async function inResponses(stream: string): Promise<string> {
  const told = openai(stream).responses.stream({ model: ask.model, input: "Hi" });
  const { status, output_text: text } = await told.finalResponse();
  assert.match(status ?? "", /^(completed|incomplete)$/);
  return text;
}

export const READERS: readonly [protocol: string, sdk: string, reads: Reads][] = [
  ["chat-completions", "openai", inChat],
  ["responses", "openai", inResponses],
  ["messages", "@anthropic-ai/sdk", (stream) => inMessages(stream, Anthropic)],
  [
    "messages",
    "@anthropic-ai/sdk 0",
    (stream) => inMessages(stream, Anthropic0 as unknown as typeof Anthropic),
  ],
  ...GOOGLE_SDKS.map((sdk): [string, string, Reads] => [
    "gemini",
    sdk.name,
    (stream) => kept(sdk, stream),
  ]),
];
