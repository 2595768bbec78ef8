// Quirks of each backend: one interpretation, whichever backend sent them.
import { expect, test } from "vitest";
import {
  chatCompletions,
  type ChatDialect,
} from "../../../src/protocols/chat-completions/index.ts";
import { collectResponse, type ModelEvent } from "../../../src/plugin/index.ts";
import {
  createCallContext,
  decode,
  decodeWhole,
  readRecordings,
} from "../../../src/testing/index.ts";

const at = (folder: string, name: string) => {
  const of = readRecordings(
    new URL(`../../fixtures/recordings/${folder}/${name}/`, import.meta.url),
  );
  return of[0]!;
};

function read(name: string, dialect: ChatDialect = {}, folder = "chat-completions") {
  const { body, headers } = at(folder, name);
  const client = chatCompletions(dialect).client!;
  const stream = String(headers["content-type"]).startsWith("text/event-stream");
  const events: ModelEvent[] = stream
    ? decode(client, [body], createCallContext({ stream }), headers)
    : decodeWhole(client, body, createCallContext(), headers);
  const { blocks, usage, finish } = collectResponse(events);
  return { blocks, usage, finish: finish.reason, events };
}

const text = (said: string) => ({ type: "text", text: said });
const thought = (said: string) => ({ type: "reasoning", text: said });
const call = (id: string, name: string, args: string) => ({
  type: "call",
  id,
  name,
  tool: "function",
  args,
});

test("OpenAI: cached and reasoning tokens are subtracted from the counts that include them", () => {
  expect(read("openai-text")).toMatchObject({
    blocks: [
      text('Grüße 👋🏽, "model":"fake" and {"usage":{"prompt_tokens":1}}\n\ndata: [DONE]\n\n end.'),
    ],
    usage: { input: 100, cache_read: 900, cache_write_30m: 200, output: 100, reasoning: 60 },
    finish: "stop",
  });
});

test("OpenAI: parallel calls", () => {
  expect(read("openai-tools")).toMatchObject({
    blocks: [
      call("call_a", "get_weather", '{"city":"São Paulo"}'),
      call("call_b", "get_time", "{}"),
    ],
    usage: { input: 61, output: 33 },
    finish: "tool_calls",
  });
});

test("OpenAI: the first of two calls ends when the second starts, so that no client waits for the end", () => {
  const types = read("openai-tools").events.map((e) =>
    "index" in e ? `${e.type} ${e.index}` : e.type,
  );
  expect(types.indexOf("close 0")).toBeLessThan(types.indexOf("open 1"));
});

test("OpenAI: refusals, log probabilities, audio", () => {
  expect(read("openai-refusal")).toMatchObject({
    blocks: [{ type: "refusal", text: "I'm sorry, I can't help with that." }],
    finish: "stop",
  });
  expect(read("openai-logprobs").blocks).toMatchObject([
    { type: "text", text: "Hi there", logprobs: [{ token: "Hi" }, { token: " there" }] },
  ]);
  expect(read("openai-audio")).toMatchObject({
    blocks: [
      {
        type: "opaque",
        origin: "chat-completions",
        raw: {
          audio: { id: "audio_1", transcript: "Hello", data: "AAECAwQF", expires_at: 1795003600 },
        },
      },
    ],
    usage: { input: 10, audio_in: 20, output: 8, audio_out: 32, cache_read: 0 },
  });
});

test("Azure: a first chunk about the prompt is not yet a response", () => {
  const { blocks, events } = read("azure-text");
  expect(events[0]).toMatchObject({ type: "start", id: "chatcmpl-Az1" });
  expect(blocks).toMatchObject([text("Yes.")]);
});

test("reasoning under every name, before the text", () => {
  expect(read("deepseek-thinking")).toMatchObject({
    blocks: [thought("Let me see."), text("42")],
    usage: { input: 9, cache_read: 16, output: 20, reasoning: 18 },
  });
  expect(read("deepseek-whole").blocks).toMatchObject([thought("Let me see."), text("42")]);
  expect(read("groq-tools")).toMatchObject({
    blocks: [thought("I need the weather."), call("fc_1", "get_weather", '{"city":"Oslo"}')],
    usage: { input: 150, output: 45, reasoning: 20 },
  });
  expect(read("moonshot-thinking")).toMatchObject({
    blocks: [thought("Hm."), text("Hello!")],
    usage: { input: 11, cache_read: 8, output: 21 },
  });
  expect(read("mistral-thinking")).toMatchObject({
    blocks: [thought("So, yes."), text("Yes.")],
    usage: { input: 7, cache_read: 4, output: 14 },
  });
  expect(read("mistral-whole").blocks).toMatchObject([thought("So, yes."), text("Yes.")]);
});

test("OpenRouter and MiniMax: details repeat the text and contain the proof", () => {
  const { blocks, events } = read("openrouter-reasoning");
  expect(blocks).toMatchObject([
    {
      type: "reasoning",
      text: "First this.",
      proof: { origin: "chat-completions", kind: "reasoning_details" },
    },
    text("Done."),
  ]);
  expect(JSON.parse((blocks[0] as { proof: { data: string } }).proof.data)).toEqual([
    {
      type: "reasoning.text",
      text: "First this.",
      format: "anthropic-claude-v1",
      index: 0,
      signature: "EqQBCkgIARAB",
    },
  ]);
  expect(events.find((e) => e.type === "usage")).toMatchObject({ costNano: 420_000n });
  expect(read("minimax-split").blocks).toMatchObject([thought("Short"), text("ok")]);
});

test("Gemini's compatible endpoint: no index, a signature on a call, stop in place of tool_calls, reasoning outside the output count", () => {
  expect(read("gemini-tools")).toMatchObject({
    blocks: [
      {
        ...call("function-call-1", "get_weather", '{"city":"Rome"}'),
        proof: { kind: "extra_content", data: '{"google":{"thought_signature":"CqEBc2ln"}}' },
      },
      call("function-call-2", "get_weather", '{"city":"Bern"}'),
    ],
    usage: { input: 60, output: 50 },
    finish: "tool_calls",
  });
});

test("vLLM: gaps in indexes, empty and missing IDs, repeated names, arguments as an object, usage from the start", () => {
  const { blocks, usage, finish } = read("vllm-tools");
  expect(blocks).toMatchObject([
    thought("think"),
    call("chatcmpl-tool-1", "read", '{"path":"a.txt"}'),
    {
      type: "call",
      id: expect.stringMatching(/^call_[0-9a-z]{24}$/),
      name: "list",
      args: '{"dir":"."}',
    },
  ]);
  expect(usage).toMatchObject({ input: 200, output: 40 });
  expect(finish).toBe("tool_calls");
});

test("CRLF and a byte order mark; no [DONE]; the oldest form of calls", () => {
  expect(read("llama-cpp-crlf")).toMatchObject({ blocks: [text("Hello")], finish: "length" });
  expect(read("no-done")).toMatchObject({
    blocks: [text("done without saying so")],
    finish: "stop",
  });
  expect(read("legacy-function")).toMatchObject({
    blocks: [{ type: "call", name: "add", args: '{"a":1}' }],
    finish: "tool_calls",
  });
});

test("tags at the start are reasoning only for backends that write them", () => {
  const perplexity = read(
    "perplexity-tags",
    { thinkTags: true, reasoningNotInOutput: true },
    "chat-completions-tags",
  );
  expect(perplexity).toMatchObject({
    blocks: [thought("Is it?"), text("It is <think>not</think>.")],
    usage: { input: 10, output: 38, reasoning: 30, searches: 2 },
  });
  expect(perplexity.events.find((e) => e.type === "usage")).toMatchObject({ costNano: 6_000_000n });
  expect(read("perplexity-tags", {}, "chat-completions-tags").blocks).toMatchObject([
    text("<think>\nIs it?</think>\n\nIt is <think>not</think>."),
  ]);
});

test("a non-streaming response: citations, freeform calls, the billed tier", () => {
  const { blocks, events } = read("openai-whole");
  expect(blocks).toMatchObject([
    {
      type: "text",
      text: 'Hi, "model":"x"',
      citations: [{ type: "url_citation", url: "https://t.example", title: "T" }],
    },
  ]);
  expect(events.find((e) => e.type === "usage")).toMatchObject({
    tier: "flex",
    model: "gpt-6-luna-2026-09-30",
  });
  expect(read("openai-whole-tools").blocks).toMatchObject([
    call("call_1", "a", '{"x":1}'),
    { type: "call", id: "call_2", name: "sql", tool: "custom", args: "select 1" },
  ]);
});
