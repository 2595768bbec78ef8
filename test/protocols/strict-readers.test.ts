// The strictest published parser of each protocol accepts everything that we send: the AI SDK
// validates each chunk and each response by closed schemas, and a rejection is an error for a
// client's user. For any events in any order, streaming or not, it reads all text and calls.
import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { collectResponse, type ModelEvent } from "tollgate/plugin";
import {
  createResponseContext,
  createCallContext,
  decode,
  encodeText,
  readRecordings,
} from "tollgate/testing";
import { anyAnswers } from "./generators/any-answer.ts";
import { chats, upstreams } from "./generators/codecs.ts";
import { said, type Called } from "./generators/essence.ts";
import { trialCount } from "../kit/law-effort.ts";

Object.assign(globalThis, { AI_SDK_LOG_WARNINGS: false });

/** Responds to every request with these bytes. */
type Sdk = (fetch: typeof globalThis.fetch) => Reader;
type Reader = ReturnType<ReturnType<typeof createOpenAI>["chat"]>;
const about = { apiKey: "key", baseURL: "http://127.0.0.1:9/v1" };

const READERS: readonly {
  readonly wire: string;
  readonly name: string;
  readonly sdk: Sdk;
  /** It shows reasoning, and accepts freeform calls although the client declared none. */
  readonly thoughts: boolean;
  readonly custom: boolean;
}[] = [
  {
    wire: "chat-completions",
    name: "openai",
    sdk: (fetch) => createOpenAI({ ...about, fetch }).chat("m"),
    thoughts: false,
    custom: false,
  },
  {
    wire: "chat-completions",
    name: "openai-compatible",
    sdk: (fetch) => createOpenAICompatible({ ...about, name: "team", fetch })("m") as Reader,
    thoughts: true,
    custom: false,
  },
  {
    wire: "messages",
    name: "anthropic",
    sdk: (fetch) => createAnthropic({ ...about, fetch })("m") as Reader,
    thoughts: true,
    custom: true,
  },
  {
    wire: "responses",
    name: "openai",
    sdk: (fetch) => createOpenAI({ ...about, fetch }).responses("m"),
    thoughts: true,
    custom: true,
  },
];

const OPTIONS = {
  prompt: [{ role: "user", content: [{ type: "text", text: "Hi" }] }],
} as Parameters<Reader["doStream"]>[0];

interface Read {
  readonly errors: unknown[];
  text: string;
  thought: string;
  readonly calls: { readonly name: string; readonly args: unknown }[];
  end: string;
  cut: boolean;
}

async function readStream(sdk: Sdk, text: string): Promise<Read> {
  const headers = { "content-type": "text/event-stream" };
  const { stream } = await sdk(async () => new Response(text, { headers })).doStream(OPTIONS);
  const read: Read = { errors: [], text: "", thought: "", calls: [], end: "", cut: false };
  for await (const part of stream)
    switch (part.type) {
      case "error":
        if (isCut(part.error)) read.cut = true;
        else read.errors.push(part.error);
        break;
      case "text-delta":
        read.text += part.delta;
        break;
      case "reasoning-delta":
        read.thought += part.delta;
        break;
      case "tool-call":
        add(read, part);
        break;
      case "finish":
        read.end = part.finishReason.unified;
    }
  return read;
}

/**
 * A freeform call that the limit may have truncated: `incomplete`, as its own provider sends it,
 * and no client may run it.
 */
const isCut = (error: unknown): boolean => {
  const { item } = ((error as { value?: unknown }).value ?? {}) as { item?: Item };
  return item?.type === "custom_tool_call" && item.status === "incomplete";
};
type Item = { readonly type: string; readonly status: string };

async function readWhole(sdk: Sdk, body: object): Promise<Read> {
  const { content, finishReason } = await sdk(async () => Response.json(body)).doGenerate(OPTIONS);
  const end = finishReason.unified;
  const read: Read = { errors: [], text: "", thought: "", calls: [], end, cut: false };
  for (const part of content)
    if (part.type === "text") read.text += part.text;
    else if (part.type === "reasoning") read.thought += part.text;
    else if (part.type === "tool-call") add(read, part);
  return read;
}

type ToolCall = { toolName: string; input: string; providerExecuted?: boolean | undefined };
function add(read: Read, { toolName: name, input, providerExecuted }: ToolCall): void {
  if (!providerExecuted) read.calls.push({ name, args: JSON.parse(input) as unknown });
}

/** Messages has no freeform tools: there it is a function with one text. */
const asRead = (wire: string, { name, args }: Called) => ({
  name,
  args: typeof args === "string" && wire === "messages" ? { input: args } : args,
});

const RUNS = trialCount(200);

describe.each(READERS)("$wire as @ai-sdk/$name reads it", ({ wire, sdk, thoughts, custom }) => {
  const server = chats[wire]!.server!;
  const to = (stream: boolean) =>
    createResponseContext({ stream, body: { stream_options: { include_usage: true } } });
  const any = anyAnswers(custom ? {} : { kinds: ["text", "reasoning", "call"] });
  const judge = (read: Read, events: readonly ModelEvent[]) => {
    expect(read.errors).toEqual([]);
    const { text, thought, calls, end } = said(collectResponse(events));
    if (!read.cut) {
      expect(read.calls).toEqual(calls.map((call) => asRead(wire, call)));
      expect(read.end).not.toBe("error");
    }
    // Some have no field for a refusal's text.
    if (end !== "refused") expect(read.text).toBe(text);
    if (thoughts) expect(read.thought).toBe(thought);
  };

  it("streaming", () =>
    fc.assert(
      fc.asyncProperty(any, async (events) =>
        judge(await readStream(sdk, encodeText(server as never, events, to(true))), events),
      ),
      { numRuns: RUNS },
    ));

  it("non-streaming", () =>
    fc.assert(
      fc.asyncProperty(any, async (events) =>
        judge(
          await readWhole(sdk, server.encodeResponse(collectResponse(events), to(false))),
          events,
        ),
      ),
      { numRuns: RUNS },
    ));
});

// It only keeps data that arrives with a call's name.
it("a signature of Gemini is sent with the name of its call", async () => {
  const folder = new URL("../fixtures/recordings/gemini", import.meta.url);
  const { body, headers } = readRecordings(folder).find(
    ({ name }) => name === "thinking-parallel-tools",
  )!;
  const { client } = upstreams["gemini"]!;
  const events = decode(client as never, [body], createCallContext({ stream: true }), headers);
  const text = encodeText(
    chats["chat-completions"]!.server as never,
    events,
    createResponseContext(),
  );
  const reader = READERS.find(({ name }) => name === "openai-compatible")!;
  const answered = async () =>
    new Response(text, { headers: { "content-type": "text/event-stream" } });
  const { stream } = await reader.sdk(answered).doStream(OPTIONS);
  const signed: unknown[] = [];
  for await (const part of stream)
    if (part.type === "tool-call")
      signed.push(part.providerMetadata?.["team"]?.["thoughtSignature"] !== undefined);
  // Of parallel calls, the first is signed.
  expect(signed).toEqual([true, false]);
});
