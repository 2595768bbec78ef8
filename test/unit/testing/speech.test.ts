// The fake upstream's responses are checked by their consumers: the official SDKs, and our own
// checkers of the wire formats.
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  call,
  say,
  scriptedModel,
  think,
  startUpstream,
  type ModelScript,
  type TestUpstream,
} from "tollgate/testing";
import * as chat from "../../protocols/wire/chat-completions.ts";
import * as messages from "../../protocols/wire/messages.ts";
import * as responses from "../../protocols/wire/responses.ts";

const usage = {
  input: 100,
  cache_read: 900,
  cache_write_5m: 150,
  cache_write_1h: 50,
  output: 100,
  reasoning: 60,
};
const speeches: Record<string, ModelScript> = {
  text: say("Hello, wörld 🌍!\n").usage(usage),
  thought: think("Need the weather.", "sig")
    .say("Checking.")
    .call("get_weather", { city: "Osłó" })
    .usage(usage),
  parallel: call("one", {}).call("two", { deep: { a: [1, '"}'] } }),
  redacted: think("", "cipher").say("Hi"),
  long: say("And so").finish("length"),
};
const bodyOf = (answer: { body?: unknown }) =>
  ([answer.body].flat() as any[]).map((piece) => piece.bytes ?? piece).join("");

describe.each(Object.entries(speeches))("%s", (_name, speech) => {
  it("follows each protocol, streaming and non-streaming", () => {
    const body = { stream_options: { include_usage: true } };
    chat.checkStream(
      bodyOf(speech.toProtocol("chat-completions", { stream: true, body })),
      "complete",
      true,
    );
    chat.checkStream(
      bodyOf(speech.toProtocol("chat-completions", { stream: true })),
      "complete",
      false,
    );
    chat.checkWhole(JSON.parse(bodyOf(speech.toProtocol("chat-completions"))));
    messages.checkStream(bodyOf(speech.toProtocol("messages", { stream: true })), "complete");
    messages.checkWhole(JSON.parse(bodyOf(speech.toProtocol("messages"))));
    const streamed = bodyOf(speech.toProtocol("responses", { stream: true }));
    responses.checkStream(`${streamed}data: [DONE]\n\n`, "complete");
    responses.checkWhole(JSON.parse(bodyOf(speech.toProtocol("responses"))));
  });
});

describe("the official SDKs", () => {
  let up: TestUpstream;
  let openai: OpenAI;
  let anthropic: Anthropic;
  beforeAll(async () => {
    up = await startUpstream();
    openai = new OpenAI({ apiKey: "k", baseURL: `${up.url}/v1`, maxRetries: 0 });
    anthropic = new Anthropic({ apiKey: "k", baseURL: up.url, maxRetries: 0 });
  });
  afterAll(() => up.close());
  const asked = { model: "m", messages: [{ role: "user" as const, content: "Hi" }] };

  it.each([true, false])("decode it in chat completions (stream: %s)", async (stream) => {
    up.setRoutes(scriptedModel(speeches["thought"]!));
    const answer = stream
      ? await openai.chat.completions
          .stream({ ...asked, stream_options: { include_usage: true } })
          .finalChatCompletion()
      : await openai.chat.completions.create(asked);
    expect(answer.choices[0]!.message.content).toBe("Checking.");
    expect(answer.choices[0]!.finish_reason).toBe("tool_calls");
    const [tool] = answer.choices[0]!.message.tool_calls!;
    expect(tool).toMatchObject({ function: { name: "get_weather", arguments: '{"city":"Osłó"}' } });
    expect(answer.usage).toMatchObject({
      prompt_tokens: 1200,
      completion_tokens: 100,
      total_tokens: 1300,
    });
  });

  it.each([true, false])("decode it in messages (stream: %s)", async (stream) => {
    up.setRoutes(scriptedModel(speeches["thought"]!));
    const request = { ...asked, max_tokens: 100 };
    const answer = stream
      ? await anthropic.messages.stream(request).finalMessage()
      : await anthropic.messages.create(request);
    expect(answer.content).toMatchObject([
      { type: "thinking", thinking: "Need the weather.", signature: "sig" },
      { type: "text", text: "Checking." },
      { type: "tool_use", name: "get_weather", input: { city: "Osłó" } },
    ]);
    expect(answer.stop_reason).toBe("tool_use");
    expect(answer.usage).toMatchObject({
      input_tokens: 100,
      cache_creation_input_tokens: 200,
      cache_read_input_tokens: 900,
      output_tokens: 100,
    });
  });

  it.each([true, false])("decode it in responses (stream: %s)", async (stream) => {
    up.setRoutes(scriptedModel(speeches["thought"]!));
    const request = { model: "m", input: "Hi" };
    const answer = stream
      ? await openai.responses.stream(request).finalResponse()
      : await openai.responses.create(request);
    expect(answer.output_text).toBe("Checking.");
    expect(answer.output.map((item) => item.type)).toEqual([
      "reasoning",
      "message",
      "function_call",
    ]);
    expect(answer.usage).toMatchObject({
      input_tokens: 1200,
      output_tokens: 100,
      total_tokens: 1300,
    });
  });

  it("raise an error if it ends with one", async () => {
    up.setRoutes(scriptedModel(say("Hel").fail("The model fell over.")));
    await expect(openai.chat.completions.stream(asked).finalChatCompletion()).rejects.toThrow(
      "fell over",
    );
    await expect(
      anthropic.messages.stream({ ...asked, max_tokens: 9 }).finalMessage(),
    ).rejects.toThrow("fell over");
    await expect(
      openai.responses.stream({ model: "m", input: "Hi" }).finalResponse(),
    ).rejects.toThrow("fell over");
  });
});
