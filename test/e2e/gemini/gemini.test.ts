// A Gemini upstream behind the real gateway, called by the official SDKs of the three protocols:
// reasoning, parallel tools over several turns, streaming and non-streaming responses, and counts.
// Failures and images are in gemini/edges.test.ts.
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { say, think, type UpstreamRequest } from "tollgate/testing";
import {
  API_KEY,
  startGatewayWithGemini,
  MODEL,
  SIGNATURE,
  type GatewayWithGemini,
} from "./gateway-with-gemini.ts";

let at: GatewayWithGemini;
let openai: OpenAI;
let anthropic: Anthropic;

beforeAll(async () => {
  at = await startGatewayWithGemini();
  const { key, url } = at.gateway;
  openai = new OpenAI({ apiKey: key, baseURL: `${url}/v1`, maxRetries: 0 });
  anthropic = new Anthropic({ apiKey: key, baseURL: url, maxRetries: 0 });
});
afterAll(() => at[Symbol.asyncDispose]());
beforeEach(() => at.speak(say("Hi")));

/** Reasons and calls two tools in parallel. After their results, it responds with text. */
const weather = (one: UpstreamRequest) => {
  const results = JSON.stringify(one.json()).match(/"functionResponse"/g)?.length ?? 0;
  return results === 0
    ? think("Two cities.", SIGNATURE)
        .call("get_weather", { city: "Oslo" })
        .call("get_weather", { city: "Bergen" })
        .usage({ input: 57, output: 60, reasoning: 31 })
    : say("Sun in Oslo, rain in Bergen.").usage({ input: 120, cache_read: 57, output: 9 });
};
const SKY: Record<string, string> = { Oslo: "sun", Bergen: "rain" };
const schema = {
  type: "object" as const,
  properties: { city: { type: "string" } },
  required: ["city"],
};
/** Parts of the second request to the model, one by one. */
const returned = () => {
  const { contents } = at.asked().at(-1)!.json();
  return contents.slice(-2).map(({ parts }: any) => parts);
};
const BACK = [
  [
    { functionCall: { name: "get_weather", args: { city: "Oslo" } }, thoughtSignature: SIGNATURE },
    { functionCall: { name: "get_weather", args: { city: "Bergen" } } },
  ],
  [
    { functionResponse: { name: "get_weather", response: { output: "sun" } } },
    { functionResponse: { name: "get_weather", response: { output: "rain" } } },
  ],
];

describe("chat completions, by openai", () => {
  const tools: OpenAI.Chat.ChatCompletionTool[] = [
    { type: "function", function: { name: "get_weather", parameters: schema } },
  ];

  it.each([true, false])(
    "reasons, calls two tools in parallel, and continues; streamed: %s",
    async (stream) => {
      at.speak(weather);
      const messages: any[] = [{ role: "user", content: "Weather in Oslo and Bergen?" }];
      const turn = async () => {
        const ask = { model: MODEL, messages, tools, reasoning_effort: "high" as const };
        return stream
          ? openai.chat.completions.stream(ask).finalChatCompletion()
          : openai.chat.completions.create(ask);
      };
      const first = await turn();
      const [{ message, finish_reason }] = first.choices as [any];
      expect(finish_reason).toBe("tool_calls");
      // The SDK's helper keeps the last chunk of unknown fields.
      expect(message.reasoning_content).toBe(stream ? " cities." : "Two cities.");
      expect(message.tool_calls).toHaveLength(2);
      expect(first.model).toBe(MODEL);
      messages.push(message);
      for (const call of message.tool_calls)
        messages.push({
          role: "tool",
          tool_call_id: call.id,
          content: SKY[JSON.parse(call.function.arguments).city],
        });
      const second = await turn();
      expect(second.choices[0]!.message.content).toBe("Sun in Oslo, rain in Bergen.");
      expect(returned()).toMatchObject(BACK);
      const { generationConfig } = at.asked()[0]!.json();
      expect(generationConfig.thinkingConfig).toEqual({
        includeThoughts: true,
        thinkingLevel: "HIGH",
      });
      if (!stream)
        expect(second.usage).toMatchObject({
          prompt_tokens: 177,
          prompt_tokens_details: { cached_tokens: 57 },
          completion_tokens: 9,
        });
    },
  );

  it("tool results in another order are sorted in the order of the calls", async () => {
    at.speak(weather);
    const messages: any[] = [{ role: "user", content: "Weather?" }];
    const { choices } = await openai.chat.completions.create({ model: MODEL, messages, tools });
    const { message } = choices[0]!;
    const calls = message.tool_calls as OpenAI.Chat.ChatCompletionMessageFunctionToolCall[];
    messages.push(message);
    for (const call of calls.toReversed())
      messages.push({
        role: "tool",
        tool_call_id: call.id,
        content: JSON.parse(call.function.arguments).city,
      });
    await openai.chat.completions.create({ model: MODEL, messages, tools });
    const [, results] = returned();
    expect(results.map((part: any) => part.functionResponse.response.output)).toEqual([
      "Oslo",
      "Bergen",
    ]);
    expect(results.map((part: any) => part.functionResponse.id)).toEqual(calls.map(({ id }) => id));
  });

  it("sends placeholder signatures for history of another model, or of a client that drops unknown fields", async () => {
    at.speak(weather);
    await openai.chat.completions.create({
      model: MODEL,
      tools,
      messages: [
        { role: "user", content: "Weather?" },
        {
          role: "assistant",
          tool_calls: [
            { id: "call_1", type: "function", function: { name: "get_weather", arguments: "{}" } },
          ],
        },
        { role: "tool", tool_call_id: "call_1", content: "sun" },
      ],
    });
    expect(returned()[0][0].thoughtSignature).toBe("skip_thought_signature_validator");
  });

  it("accepts JSON by a schema, images, and PDFs, and reports lost fields", async () => {
    const { response, data } = await openai.chat.completions
      .create({
        model: MODEL,
        seed: 7,
        logit_bias: { "1": 5 },
        messages: [
          { role: "system", content: "Be brief." },
          {
            role: "user",
            content: [
              { type: "text", text: "What is this?" },
              { type: "image_url", image_url: { url: "data:image/jpg;base64,/9j/4AAQ" } },
              {
                type: "file",
                file: { filename: "a.pdf", file_data: "data:application/pdf;base64,JVBERi0=" },
              },
            ],
          },
        ],
        response_format: { type: "json_schema", json_schema: { name: "x", schema } },
      })
      .withResponse();
    expect(data.choices[0]!.message.content).toBe("Hi");
    expect(at.asked()[0]!.json()).toEqual({
      systemInstruction: { parts: [{ text: "Be brief." }] },
      contents: [
        {
          role: "user",
          parts: [
            { text: "What is this?" },
            { inlineData: { mimeType: "image/jpeg", data: "/9j/4AAQ" } },
            { inlineData: { mimeType: "application/pdf", data: "JVBERi0=" } },
          ],
        },
      ],
      generationConfig: {
        seed: 7,
        responseMimeType: "application/json",
        responseJsonSchema: schema,
      },
    });
    const warnings = response.headers.get("x-tollgate-warnings");
    expect(warnings).toContain("field=logit_bias");
    expect(warnings).toContain("field=document.title");
  });

  it("drops parameters of other vendors, and forwards Google's own", async () => {
    await openai.chat.completions.create({
      model: MODEL,
      messages: [{ role: "user", content: "Hi" }],
      min_p: 0.1,
      safetySettings: [{ category: "HARM_CATEGORY_HARASSMENT", threshold: "OFF" }],
      generationConfig: { mediaResolution: "MEDIA_RESOLUTION_LOW" },
      temperature: 0.5,
    } as OpenAI.Chat.ChatCompletionCreateParamsNonStreaming);
    const body = at.asked()[0]!.json();
    expect(body).not.toHaveProperty("min_p");
    expect(body.safetySettings).toHaveLength(1);
    expect(body.generationConfig).toEqual({
      mediaResolution: "MEDIA_RESOLUTION_LOW",
      temperature: 0.5,
    });
  });

  it("sends the key in its header only", async () => {
    await openai.chat.completions.create({
      model: MODEL,
      messages: [{ role: "user", content: "Hi" }],
    });
    const [one] = at.asked();
    expect(one!.headers["x-goog-api-key"]).toBe(API_KEY);
    expect(one!.headers["authorization"]).toBeUndefined();
    expect(one!.path).toBe("/v1beta/models/gemini-3.5-flash:generateContent");
    expect(one!.query.get("key")).toBeNull();
  });
});

describe("messages, by @anthropic-ai/sdk", () => {
  const tools: Anthropic.Tool[] = [{ name: "get_weather", input_schema: schema }];

  it.each([true, false])(
    "reasons, calls two tools in parallel, and continues; streamed: %s",
    async (stream) => {
      at.speak(weather);
      const messages: Anthropic.MessageParam[] = [{ role: "user", content: "Weather?" }];
      const turn = async () => {
        const ask = {
          model: MODEL,
          max_tokens: 8000,
          messages,
          tools,
          thinking: { type: "adaptive" as const },
          output_config: { effort: "high" as const },
        };
        return stream
          ? anthropic.messages.stream(ask).finalMessage()
          : anthropic.messages.create(ask);
      };
      const first = await turn();
      expect(first.stop_reason).toBe("tool_use");
      expect(first.content[0]).toMatchObject({ type: "thinking", thinking: "Two cities." });
      const calls = first.content.filter((block) => block.type === "tool_use");
      expect(calls.map(({ input }) => input)).toEqual([{ city: "Oslo" }, { city: "Bergen" }]);
      messages.push(
        { role: "assistant", content: first.content },
        {
          role: "user",
          content: [
            ...calls.map(({ id, input }) => ({
              type: "tool_result" as const,
              tool_use_id: id,
              content: SKY[(input as { city: string }).city]!,
            })),
            { type: "text" as const, text: "And?" },
          ],
        },
      );
      const second = await turn();
      expect(second.content.at(-1)).toMatchObject({ text: "Sun in Oslo, rain in Bergen." });
      const [calledBack, results] = returned();
      expect(calledBack).toMatchObject(BACK[0]!);
      expect(results.slice(0, 2)).toMatchObject(BACK[1]!);
      expect(results[2]).toEqual({ text: "And?" });
      expect(second.usage).toMatchObject({
        input_tokens: 120,
        cache_read_input_tokens: 57,
        output_tokens: 9,
      });
      expect(at.asked()[0]!.json().generationConfig).toEqual({
        maxOutputTokens: 8000,
        thinkingConfig: { includeThoughts: true, thinkingLevel: "HIGH" },
      });
    },
  );

  it("a tool's images and failures reach the model", async () => {
    await anthropic.messages.create({
      model: MODEL,
      max_tokens: 100,
      tools,
      messages: [
        { role: "user", content: "Look" },
        {
          role: "assistant",
          content: [
            { type: "tool_use", id: "a", name: "get_weather", input: {} },
            { type: "tool_use", id: "b", name: "get_weather", input: {} },
          ],
        },
        {
          role: "user",
          content: [
            {
              type: "tool_result",
              tool_use_id: "a",
              content: [
                { type: "text", text: "seen" },
                {
                  type: "image",
                  source: { type: "base64", media_type: "image/png", data: "iVBORw0=" },
                },
              ],
            },
            { type: "tool_result", tool_use_id: "b", is_error: true, content: "no such city" },
          ],
        },
      ],
    });
    expect(returned()[1]).toEqual([
      {
        functionResponse: {
          id: "a",
          name: "get_weather",
          response: { output: "seen" },
          parts: [{ inlineData: { mimeType: "image/png", data: "iVBORw0=" } }],
        },
      },
      { functionResponse: { id: "b", name: "get_weather", response: { error: "no such city" } } },
    ]);
  });

  it("counts tokens with the model that will be used", async () => {
    const { input_tokens } = await anthropic.messages.countTokens({
      model: MODEL,
      system: "Be brief.",
      messages: [{ role: "user", content: "Hi" }],
    });
    expect(input_tokens).toBe(42);
    const one = at.up.requests.find(({ path }) => path.endsWith(":countTokens"))!;
    expect(one.json()).toEqual({
      generateContentRequest: {
        model: "models/gemini-3.5-flash",
        systemInstruction: { parts: [{ text: "Be brief." }] },
        contents: [{ role: "user", parts: [{ text: "Hi" }] }],
      },
    });
  });
});

describe("responses, by openai", () => {
  const tools: OpenAI.Responses.Tool[] = [
    { type: "function", name: "get_weather", parameters: schema, strict: false },
  ];

  it.each([true, false])(
    "reasons, calls two tools in parallel, and continues; streamed: %s",
    async (stream) => {
      at.speak(weather);
      const input: OpenAI.Responses.ResponseInput = [{ role: "user", content: "Weather?" }];
      const turn = async () => {
        const ask = {
          model: MODEL,
          input,
          tools,
          store: false,
          reasoning: { effort: "high" as const, summary: "auto" as const },
          include: ["reasoning.encrypted_content" as const],
        };
        return stream ? openai.responses.stream(ask).finalResponse() : openai.responses.create(ask);
      };
      const first = await turn();
      const calls = first.output.flatMap((item) => (item.type === "function_call" ? [item] : []));
      expect(calls).toHaveLength(2);
      const thought = first.output.find(
        (item) => item.type === "reasoning" && item.summary.length > 0,
      );
      expect(thought).toMatchObject({ summary: [{ text: "Two cities." }] });
      input.push(...(first.output as OpenAI.Responses.ResponseInputItem[]));
      for (const { call_id, arguments: args } of calls)
        input.push({ type: "function_call_output", call_id, output: SKY[JSON.parse(args).city]! });
      const second = await turn();
      expect(second.output_text).toBe("Sun in Oslo, rain in Bergen.");
      expect(returned()).toMatchObject(BACK);
      expect(second.usage).toMatchObject({
        input_tokens: 177,
        output_tokens: 9,
        total_tokens: 186,
      });
    },
  );
});
