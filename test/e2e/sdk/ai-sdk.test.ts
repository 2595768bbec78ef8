// Vercel's AI SDK: its three providers, each in its own protocol, through the gateway to an
// upstream of every protocol. Its OpenAI provider uses responses and refers to its own history by
// IDs over several turns.
import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import {
  generateText,
  isStepCount,
  jsonSchema,
  Output,
  streamText,
  tool,
  type LanguageModel,
  type ModelMessage,
} from "ai";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import {
  errorResponse,
  say,
  scriptedModel,
  think,
  toolResults,
  type UpstreamRequest,
  type ModelScript,
  type ScriptProtocol,
} from "tollgate/testing";
import {
  startGatewayWithUpstream,
  modelOn,
  SPOKEN,
  type GatewayWithUpstream,
} from "./gateway-with-upstream.ts";

// It prints a warning for every unknown model.
Object.assign(globalThis, { AI_SDK_LOG_WARNINGS: false });

let at: GatewayWithUpstream;
let sdks: Record<string, (model: string) => LanguageModel>;
beforeAll(async () => {
  at = await startGatewayWithUpstream();
  const { url, key: apiKey } = at.gateway;
  const baseURL = `${url}/v1`;
  sdks = {
    openai: createOpenAI({ baseURL, apiKey }),
    "openai-compatible": createOpenAICompatible({
      name: "team",
      baseURL,
      apiKey,
      includeUsage: true,
      supportsStructuredOutputs: true,
    }),
    anthropic: createAnthropic({ baseURL, apiKey }),
  };
});
afterAll(() => at[Symbol.asyncDispose]());
afterEach(() => at.up.reset());

const USAGE = { input: 100, cache_read: 50, output: 20, reasoning: 8 };
const upstreamSays = (what: ModelScript | ((asked: UpstreamRequest) => ModelScript)) =>
  at.up.setRoutes(scriptedModel(what));
/** The n-th request to the upstream. */
const sent = (n: number) => JSON.stringify(at.asked()[n]!.json());

const place = jsonSchema<{ city: string }>({
  type: "object",
  properties: { city: { type: "string" } },
  required: ["city"],
  additionalProperties: false,
});
const tools = {
  get_weather: tool({
    description: "The weather in a city",
    inputSchema: place,
    execute: async ({ city }) => `Rain in ${city}.`,
  }),
};
/** Two parallel calls, then another round, then the last result. */
const weather = (asked: UpstreamRequest) => {
  const heard = toolResults(asked);
  if (heard.length === 0)
    return think("I should look.", "signed")
      .say("Let me see.")
      .call("get_weather", { city: "Oslo" })
      .call("get_weather", { city: 'R"ome' })
      .usage(USAGE);
  return heard.length === 2
    ? think("One more.", "signed too").call("get_weather", { city: "Paris" }).usage(USAGE)
    : say(`They say: ${heard.join(" ")}`).usage(USAGE);
};

describe.each(["openai", "openai-compatible", "anthropic"])("@ai-sdk/%s", (sdk) => {
  describe.each(SPOKEN)("on an upstream of %s", (spoken) => {
    const using = () => ({ model: sdks[sdk]!(modelOn(spoken)), maxRetries: 0 });

    it("generateText", async () => {
      upstreamSays(think("Hm, hm.", "signed").say("Héllo 🌍 there").usage(USAGE));
      const answer = await generateText({
        ...using(),
        instructions: "Be brief.",
        prompt: "Hello, wörld 🌍",
        maxOutputTokens: 500,
      });
      expect(answer.text).toBe("Héllo 🌍 there");
      expect(answer.reasoningText).toBe("Hm, hm.");
      expect(answer.finishReason).toBe("stop");
      expect(answer.usage).toMatchObject({ inputTokens: 150, outputTokens: 20 });
      expect(answer.usage.inputTokenDetails.cacheReadTokens).toBe(50);
      expect(answer.response.modelId).toBe(modelOn(spoken));
      expect(sent(0)).toContain("Hello, wörld 🌍");
      expect(sent(0)).toContain("Be brief.");
      expect(sent(0)).toContain("500");
    });

    it("streamText, delta by delta", async () => {
      upstreamSays(think("Hm, hm.", "signed").say("one two three four").usage(USAGE));
      const stream = streamText({
        ...using(),
        prompt: "Count",
        onError: ({ error }) => raise(error),
      });
      const pieces: string[] = [];
      for await (const piece of stream.textStream) pieces.push(piece);
      expect(pieces).toEqual(["one", " two", " three", " four"]);
      expect(await stream.reasoningText).toBe("Hm, hm.");
      expect(await stream.finishReason).toBe("stop");
      expect(await stream.usage).toMatchObject({ inputTokens: 150, outputTokens: 20 });
    });

    it.each(["generateText", "streamText"])("a tools loop (%s)", async (how) => {
      upstreamSays(weather);
      const asked = { ...using(), tools, stopWhen: isStepCount(5), prompt: "The weather?" };
      const answer =
        how === "generateText"
          ? await generateText(asked)
          : await settled(streamText({ ...asked, onError: ({ error }) => raise(error) }));
      expect(answer.text).toBe("They say: Rain in Paris.");
      expect(answer.steps.map((step) => step.toolResults.map(({ output }) => output))).toEqual([
        ["Rain in Oslo.", 'Rain in R"ome.'],
        ["Rain in Paris."],
        [],
      ]);
      expect(answer.steps.map((step) => step.finishReason)).toEqual([
        "tool-calls",
        "tool-calls",
        "stop",
      ]);
      expect(at.asked()).toHaveLength(3);
      for (const words of ["Let me see.", "Rain in Oslo.", "Rain in Paris."])
        expect(sent(2)).toContain(words);
      if (keepsThoughts(sdk, spoken)) expect(sent(2)).toContain('"signed"');
    });

    it.each(["generateText", "streamText"])("structured output (%s)", async (how) => {
      upstreamSays((asked) =>
        // If no schema is supported, its Anthropic provider requires a tool with this name.
        String(asked.body).includes('"name":"json"')
          ? say("").call("json", { city: "Oslo" })
          : say('{"city":"Oslo"}'),
      );
      const asked = { ...using(), prompt: "Where?", output: Output.object({ schema: place }) };
      const answer =
        how === "generateText"
          ? await generateText(asked)
          : await settled(streamText({ ...asked, onError: ({ error }) => raise(error) }));
      expect(answer.output).toEqual({ city: "Oslo" });
      expect(sent(0)).toContain('"additionalProperties":false');
    });

    it("reports truncation at the token limit", async () => {
      upstreamSays(say("And so").finish("length"));
      const answer = await generateText({ ...using(), prompt: "Go on", maxOutputTokens: 16 });
      expect(answer.finishReason).toBe("length");
    });

    it("reports an error with the message of its origin", async () => {
      for (const path of ["/v1/chat/completions", "/v1/messages", "/v1/responses"])
        at.up.setRoutes({ [`POST ${path}`]: errorResponse(400, "That is too long.") });
      await expect(generateText({ ...using(), prompt: "Hi" })).rejects.toMatchObject({
        statusCode: 400,
        message: expect.stringContaining("That is too long."),
      });
      upstreamSays(say("And").fail("It broke."));
      const errors: unknown[] = [];
      const stream = streamText({
        ...using(),
        prompt: "Hi",
        onError: ({ error }) => void errors.push(error),
      });
      await stream.consumeStream();
      expect(errors).not.toEqual([]);
    });
  });
});

describe.each(SPOKEN)("several turns of @ai-sdk/openai on an upstream of %s", (spoken) => {
  /** Three turns, the first with a tool. The last request to the upstream. */
  const talk = async (store: boolean | undefined, stream: boolean) => {
    upstreamSays((asked) => {
      if (toolResults(asked).length > 0) return say("It rains, it seems.").usage(USAGE);
      return String(asked.body).includes("And now?")
        ? think("Still the same.", "signed last").say("No change.").usage(USAGE)
        : think("I should look.", "signed")
            .say("Let me see.")
            .call("get_weather", { city: "Oslo" });
    });
    const messages: ModelMessage[] = [];
    const turn = async (content: string) => {
      messages.push({ role: "user", content });
      const asked = {
        model: sdks["openai"]!(modelOn(spoken)),
        messages,
        tools,
        maxRetries: 0,
        stopWhen: isStepCount(3),
        ...(store !== undefined && { providerOptions: { openai: { store } } }),
      };
      const answer = stream
        ? await settled(streamText({ ...asked, onError: ({ error }) => raise(error) }))
        : await generateText(asked);
      messages.push(...answer.responseMessages);
      return answer.text;
    };
    expect(await turn("The weather?")).toBe("It rains, it seems.");
    expect(await turn("And now?")).toBe("No change.");
    expect(await turn("And now? Really?")).toBe("No change.");
    return sent(at.asked().length - 1);
  };

  it.each([
    [undefined, false],
    [undefined, true],
    [false, false],
    [false, true],
  ])("with its own history (store: %s, stream: %s)", async (store, stream) => {
    const last = await talk(store, stream);
    const order = [
      "The weather?",
      "Let me see.",
      "Oslo",
      "Rain in Oslo.",
      "It rains, it seems.",
      "And now?",
      "No change.",
      "And now? Really?",
    ];
    let from = 0;
    for (const words of order) {
      from = last.indexOf(words, from);
      expect(from, `${words} in its place`).toBeGreaterThan(0);
    }
    expect(last).not.toContain("item_reference");
    if (keepsThoughts("openai", spoken)) {
      expect(last).toContain('"signed"');
      expect(last).toContain('"signed last"');
    }
  });
});

/** The complete result of a stream, in the form of generateText. */
const settled = async (stream: ReturnType<typeof streamText<any, any, any>>) => ({
  text: await stream.text,
  steps: await stream.steps,
  output: await Promise.resolve(stream.output).catch(() => undefined),
  responseMessages: await stream.responseMessages,
});

const raise = (error: unknown): never => {
  throw error;
};

/**
 * Reasoning is sent back to the provider that signed it. The compatible provider drops its
 * signature.
 */
const keepsThoughts = (sdk: string, spoken: ScriptProtocol): boolean =>
  spoken !== "chat-completions" && sdk !== "openai-compatible";
