// Failures, lists, and images of a Gemini upstream, through the real gateway.
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { jsonResponse, refuse, say } from "tollgate/testing";
import {
  API_KEY,
  startGatewayWithGemini,
  IMAGE,
  MODEL,
  SIGNATURE,
  type GatewayWithGemini,
} from "./gateway-with-gemini.ts";

let at: GatewayWithGemini;
let openai: OpenAI;
let anthropic: Anthropic;

beforeAll(async () => {
  at = await startGatewayWithGemini(
    (url) =>
      `  imitation: { use: google, with: { api_key: ${API_KEY}, base_url: "${url}", compatible: true } }\n`,
  );
  const { key, url } = at.gateway;
  openai = new OpenAI({ apiKey: key, baseURL: `${url}/v1`, maxRetries: 0 });
  anthropic = new Anthropic({ apiKey: key, baseURL: url, maxRetries: 0 });
});
afterAll(() => at[Symbol.asyncDispose]());
beforeEach(() => at.speak(say("Hi")));

describe("failures", () => {
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
    at.up.reset();
    at.up.setRoutes({ "POST /v1beta/models/*": jsonResponse(body as never, status) });
  };

  it("a blocked prompt is a refusal, not an empty response", async () => {
    answer({ promptFeedback: { blockReason: "SAFETY" }, usageMetadata: { promptTokenCount: 4 } });
    expect(await raised()).toMatchObject({ status: 400, code: "content_policy_violation" });
  });

  it("a blocked response ends as one", async () => {
    at.speak(refuse("Once upon"));
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
    expect(JSON.stringify(got)).not.toContain(API_KEY);
  });

  it("a truncated stream ends with an error", async () => {
    at.speak(say("It rains in").fail("The model is overloaded."));
    await expect(ask()).rejects.toThrow(/overloaded/);
    const [one] = at.asked();
    at.up.setRoutes({
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

describe("the catalog and images", () => {
  const PNG =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
  const drawn = (parts: readonly object[], finishReason = "STOP") =>
    jsonResponse({
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

  it("lists the models that the key may call, page by page, and none without a method", async () => {
    const ids = (await openai.models.list()).data.map(({ id }) => id);
    expect(ids.filter((id) => id.startsWith("google/"))).toEqual(
      expect.arrayContaining([MODEL, IMAGE]),
    );
    expect(ids.join()).not.toMatch(/tts/);
  });

  it("generates images, and counts them", async () => {
    at.up.reset();
    at.up.setRoutes({
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
    const [one] = at.asked();
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
  ])("an image that was %s is an error", async (_what, answer, expected) => {
    at.up.setRoutes({ "POST /v1beta/models/*": answer });
    const error: any = await draw().catch((thrown: unknown) => thrown);
    expect({ status: error.status, code: error.code }).toEqual(expected);
  });

  it("generates at most ten images", async () => {
    await expect(draw({ n: 11 })).rejects.toMatchObject({ status: 400, param: "n" });
  });
});

describe("Google's compatible Chat Completions endpoint", () => {
  it("supports multiple choices, byte for byte", async () => {
    at.up.reset();
    const choice = (index: number) => ({
      index,
      message: { role: "assistant", content: `Hi ${index}` },
      finish_reason: "stop",
    });
    at.up.setRoutes({
      "POST /v1beta/openai/chat/completions": jsonResponse({
        id: "c1",
        object: "chat.completion",
        created: 1,
        model: "gemini-3.5-flash",
        choices: [choice(0), choice(1)],
        usage: { prompt_tokens: 1, completion_tokens: 2, total_tokens: 3 },
      } as never),
    });
    const { choices, model } = await openai.chat.completions.create({
      model: "imitation/gemini-3.5-flash",
      n: 2,
      messages: [{ role: "user", content: "Hi" }],
      newer_than_us: { kept: 9007199254740993n.toString() },
    } as OpenAI.Chat.ChatCompletionCreateParamsNonStreaming);
    expect(choices.map(({ message }) => message.content)).toEqual(["Hi 0", "Hi 1"]);
    expect(model).toBe("imitation/gemini-3.5-flash");
    const [one] = at.asked();
    expect(one!.headers["authorization"]).toBe(`Bearer ${API_KEY}`);
    expect(one!.json()).toMatchObject({ model: "gemini-3.5-flash", n: 2, newer_than_us: {} });
  });

  it("other clients use the native protocol", async () => {
    const { content } = await anthropic.messages.create({
      model: "imitation/gemini-3.5-flash",
      max_tokens: 50,
      messages: [{ role: "user", content: "Hi" }],
    });
    expect(content).toMatchObject([{ text: "Hi" }]);
    expect(at.asked()[0]!.path).toBe("/v1beta/models/gemini-3.5-flash:generateContent");
  });

  it("without it, multiple choices are rejected with an explanation", async () => {
    const many = openai.chat.completions.create({
      model: MODEL,
      n: 2,
      messages: [{ role: "user", content: "Hi" }],
    });
    await expect(many).rejects.toMatchObject({ status: 400 });
  });
});
