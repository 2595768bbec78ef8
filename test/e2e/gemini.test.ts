// A Gemini upstream behind the real daemon, asked by the official SDKs of the three protocols: thinking, parallel tools
// over several turns, streams and whole answers, counts, errors, pictures. The fake API judges what it is asked as the
// documented one does: roles that take turns, results in order, signatures where the newer models demand them.
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { json, refuse, say, think, upstream, type Asked, type Upstream } from "tollgate/testing";
import { startGateway, type Daemon } from "../gateway.ts";
import { speakingGemini } from "../protocols/gemini/speech.ts";
import { judged } from "../protocols/gemini/judge.ts";

const MODEL = "google/gemini-3.5-flash";
const SIGNATURE = "CiQBjz1rX4u8Wq9zv0R2H3Jp5mGmBw+L7dT2Yy/0a1bQ=";

let up: Upstream;
let gateway: Daemon;
let openai: OpenAI;
let anthropic: Anthropic;

beforeAll(async () => {
  up = await upstream({ ...speakingGemini(say("Hi")), "GET /v1beta/models": paged });
  gateway = await startGateway({
    yaml: `
frontends: [chat-completions, messages, responses, images, models]
middleware: [auth]
store: memory
providers:
  google: { use: google, with: { api_key: AIza-secret, base_url: "${up.url}" } }
`,
  });
  openai = new OpenAI({ apiKey: gateway.key, baseURL: `${gateway.url}/v1`, maxRetries: 0 });
  anthropic = new Anthropic({ apiKey: gateway.key, baseURL: gateway.url, maxRetries: 0 });
});
afterAll(async () => {
  await gateway[Symbol.asyncDispose]();
  await up.close();
});

/** The list as it comes: two pages, with models that answer nothing here. */
function paged(one: Asked) {
  const model = (name: string, methods = ["generateContent", "countTokens"]) => ({
    name: `models/${name}`,
    displayName: name.toUpperCase(),
    inputTokenLimit: 1_048_576,
    outputTokenLimit: 65_536,
    supportedGenerationMethods: methods,
    thinking: true,
  });
  return json(
    one.query.get("pageToken") === "second/page"
      ? { models: [model("gemini-3-pro-image"), model("gemini-2.5-flash-preview-tts")] }
      : {
          models: [model("gemini-3.5-flash"), model("gemini-embedding-001", ["embedContent"])],
          nextPageToken: "second/page",
        },
  );
}

/** What upstream was asked to generate. */
const asked = () =>
  up.requests.filter(({ method, path }) => method === "POST" && !/count/.test(path));
const speak = (what: Parameters<typeof speakingGemini>[0]) => {
  up.forget();
  up.script({
    ...speakingGemini((one) => {
      judged(one.json());
      return typeof what === "function" ? what(one) : what;
    }),
    "GET /v1beta/models": paged,
  });
};
beforeEach(() => speak(say("Hi")));

/** Thinks and calls two tools at once; once it has their results, it says so. */
const weather = (one: Asked) => {
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
/** What the second request gave back to the model, part by part. */
const returned = () => {
  const { contents } = asked().at(-1)!.json();
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
    "thinks, calls two tools at once and goes on; streamed: %s",
    async (stream) => {
      speak(weather);
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
      // The SDK's helper keeps the last piece of fields that it does not know.
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
      const { generationConfig } = asked()[0]!.json();
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

  it("results that come in another order stand in the order of the calls", async () => {
    speak(weather);
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

  it("history that another model made, or a client that drops what it does not know, is vouched for", async () => {
    speak(weather);
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

  it("JSON by a schema, pictures and PDFs in, and what gets lost is told", async () => {
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
    expect(asked()[0]!.json()).toEqual({
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

  it("other vendors' knobs stay behind, Google's own get through", async () => {
    await openai.chat.completions.create({
      model: MODEL,
      messages: [{ role: "user", content: "Hi" }],
      min_p: 0.1,
      safetySettings: [{ category: "HARM_CATEGORY_HARASSMENT", threshold: "OFF" }],
      generationConfig: { mediaResolution: "MEDIA_RESOLUTION_LOW" },
      temperature: 0.5,
    } as OpenAI.Chat.ChatCompletionCreateParamsNonStreaming);
    const body = asked()[0]!.json();
    expect(body).not.toHaveProperty("min_p");
    expect(body.safetySettings).toHaveLength(1);
    expect(body.generationConfig).toEqual({
      mediaResolution: "MEDIA_RESOLUTION_LOW",
      temperature: 0.5,
    });
  });

  it("the key goes in its header and nowhere else", async () => {
    await openai.chat.completions.create({
      model: MODEL,
      messages: [{ role: "user", content: "Hi" }],
    });
    const [one] = asked();
    expect(one!.headers["x-goog-api-key"]).toBe("AIza-secret");
    expect(one!.headers["authorization"]).toBeUndefined();
    expect(one!.path).toBe("/v1beta/models/gemini-3.5-flash:generateContent");
    expect(one!.query.get("key")).toBeNull();
  });
});

describe("messages, by @anthropic-ai/sdk", () => {
  const tools: Anthropic.Tool[] = [{ name: "get_weather", input_schema: schema }];

  it.each([true, false])(
    "thinks, calls two tools at once and goes on; streamed: %s",
    async (stream) => {
      speak(weather);
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
      expect(asked()[0]!.json().generationConfig).toEqual({
        maxOutputTokens: 8000,
        thinkingConfig: { includeThoughts: true, thinkingLevel: "HIGH" },
      });
    },
  );

  it("a tool's pictures and failures reach the model", async () => {
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

  it("counts by asking the model that will read it", async () => {
    const { input_tokens } = await anthropic.messages.countTokens({
      model: MODEL,
      system: "Be brief.",
      messages: [{ role: "user", content: "Hi" }],
    });
    expect(input_tokens).toBe(42);
    const one = up.requests.find(({ path }) => path.endsWith(":countTokens"))!;
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
    "thinks, calls two tools at once and goes on; streamed: %s",
    async (stream) => {
      speak(weather);
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

describe("what goes wrong", () => {
  const ask = () =>
    openai.chat.completions
      .create({ model: MODEL, messages: [{ role: "user", content: "Hi" }], stream: true })
      .then(async (stream) => {
        for await (const _ of stream);
      });
  const raised = async (run: () => Promise<unknown> = ask) =>
    run().then(
      () => ({ status: 200 }),
      (error: any) => ({ status: error.status, code: error.code, message: error.message }),
    );
  const answer = (body: object, status = 200) => {
    up.forget();
    up.script({ "POST /v1beta/models/*": json(body as never, status) });
  };

  it("a blocked prompt is a refusal, not an empty answer", async () => {
    answer({ promptFeedback: { blockReason: "SAFETY" }, usageMetadata: { promptTokenCount: 4 } });
    expect(await raised()).toMatchObject({ status: 400, code: "content_policy_violation" });
  });

  it("a withheld answer ends as one", async () => {
    speak(refuse("Once upon"));
    const { choices } = await openai.chat.completions.create({
      model: MODEL,
      messages: [{ role: "user", content: "Hi" }],
    });
    expect(choices[0]).toMatchObject({ finish_reason: "content_filter" });
    const message = await anthropic.messages.create({
      model: MODEL,
      max_tokens: 9,
      messages: [{ role: "user", content: "Hi" }],
    });
    expect(message.stop_reason).toBe("refusal");
  });

  it.each([
    [
      {
        code: 400,
        status: "INVALID_ARGUMENT",
        message: "API key not valid.",
        details: [{ reason: "API_KEY_INVALID" }],
      },
      502,
    ],
    [{ code: 429, status: "RESOURCE_EXHAUSTED", message: "Slow down." }, 429],
    [{ code: 503, status: "UNAVAILABLE", message: "The model is overloaded." }, 503],
    [{ code: 404, status: "NOT_FOUND", message: "models/x is not found" }, 404],
    [
      {
        code: 400,
        status: "INVALID_ARGUMENT",
        message: "The input token count (9) exceeds the maximum number of tokens allowed (8).",
      },
      400,
    ],
  ])("%o is a %i", async (error, status) => {
    answer({ error }, error.code);
    const got = await raised();
    expect(got.status).toBe(status);
    expect(JSON.stringify(got)).not.toContain("AIza-secret");
  });

  it("a stream that breaks ends in an error", async () => {
    speak(say("It rains in").fail("The model is overloaded."));
    await expect(ask()).rejects.toThrow(/overloaded/);
    const [one] = asked();
    up.script({
      "POST /v1beta/models/*": {
        headers: { "content-type": "text/event-stream" },
        body: [
          'data: {"candidates":[{"content":{"parts":[{"text":"It "}]}}]}\r\n\r\n',
          '{"error":{"code":503,"message":"Gone for now.","status":"UNAVAILABLE"}}',
        ],
      },
    });
    await expect(ask()).rejects.toThrow(/Gone for now/);
    expect(one).toBeDefined();
  });
});

describe("the catalogue and pictures", () => {
  const IMAGE = "google/gemini-3-pro-image";
  const PNG =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
  const drawn = (parts: readonly object[], finishReason = "STOP") =>
    json({
      candidates: [{ content: { role: "model", parts }, finishReason, index: 0 }],
      usageMetadata: {
        promptTokenCount: 6,
        candidatesTokenCount: 1296,
        thoughtsTokenCount: 210,
        candidatesTokensDetails: [{ modality: "IMAGE", tokenCount: 1290 }],
      },
      responseId: "i1",
    } as never);
  const draw = (more: object = {}) =>
    openai.images.generate({
      model: IMAGE,
      prompt: "A fjord",
      ...more,
    }) as Promise<OpenAI.ImagesResponse>;

  it("lists what the key may call, page by page, and nothing that neither talks nor draws", async () => {
    const ids = (await openai.models.list()).data.map(({ id }) => id);
    expect(ids.filter((id) => id.startsWith("google/"))).toEqual(
      expect.arrayContaining([MODEL, IMAGE]),
    );
    expect(ids.join()).not.toMatch(/tts|embedding/);
  });

  it("draws, and counts what it drew", async () => {
    up.forget();
    up.script({
      "POST /v1beta/models/*": drawn([
        { text: "A draft", thought: true },
        { inlineData: { mimeType: "image/png", data: "AAAA" }, thought: true },
        { text: "Here it is." },
        { inlineData: { mimeType: "image/png", data: PNG }, thoughtSignature: SIGNATURE },
      ]),
    });
    const { data, usage } = await draw({ size: "1920x1080" });
    expect(data).toEqual([{ b64_json: PNG }]);
    expect(usage).toMatchObject({ input_tokens: 6, output_tokens: 1506 });
    expect(usage!.output_tokens_details).toEqual({ image_tokens: 1290, text_tokens: 216 });
    const [one] = asked();
    expect(one!.path).toBe("/v1beta/models/gemini-3-pro-image:generateContent");
    expect(one!.json()).toEqual({
      contents: [{ role: "user", parts: [{ text: "A fjord" }] }],
      generationConfig: {
        responseModalities: ["TEXT", "IMAGE"],
        imageConfig: { aspectRatio: "16:9", imageSize: "2K" },
      },
    });
  });

  it.each([
    ["filtered", drawn([], "IMAGE_SAFETY"), { status: 400, code: "moderation_blocked" }],
    [
      "only talked about",
      drawn([{ text: "I would rather not." }]),
      { status: 502, code: "no_image" },
    ],
  ])("a picture that was %s is an error", async (_what, answer, expected) => {
    up.script({ "POST /v1beta/models/*": answer });
    const error: any = await draw().catch((thrown: unknown) => thrown);
    expect({ status: error.status, code: error.code }).toEqual(expected);
  });

  it("asks for one at a time", async () => {
    await expect(draw({ n: 2 })).rejects.toMatchObject({ status: 400, param: "n" });
  });
});
