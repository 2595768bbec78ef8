// LangChain: ChatOpenAI on chat completions and on responses, through the gateway to an upstream of
// every protocol.
import { AIMessageChunk, HumanMessage, SystemMessage, ToolMessage } from "@langchain/core/messages";
import type { ToolCall } from "@langchain/core/messages/tool";
import { DynamicStructuredTool } from "@langchain/core/tools";
import { ChatOpenAI } from "@langchain/openai";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import {
  errorResponse,
  say,
  scriptedModel,
  think,
  toolResults,
  type UpstreamRequest,
  type ModelScript,
} from "tollgate/testing";
import {
  startGatewayWithUpstream,
  modelOn,
  SPOKEN,
  type GatewayWithUpstream,
} from "./gateway-with-upstream.ts";

let at: GatewayWithUpstream;
beforeAll(async () => {
  at = await startGatewayWithUpstream();
});
afterAll(() => at[Symbol.asyncDispose]());
afterEach(() => at.up.reset());

const USAGE = { input: 100, cache_read: 50, output: 20, reasoning: 8 };
const upstreamSays = (what: ModelScript | ((asked: UpstreamRequest) => ModelScript)) =>
  at.up.setRoutes(scriptedModel(what));
const sent = (n: number) => JSON.stringify(at.asked()[n]!.json());

const SCHEMA = {
  type: "object",
  properties: { city: { type: "string" } },
  required: ["city"],
  additionalProperties: false,
} as const;
const getWeather = new DynamicStructuredTool({
  name: "get_weather",
  description: "The weather in a city",
  schema: SCHEMA,
  func: async (place) => `Rain in ${(place as { city: string }).city}.`,
});
/** Two parallel calls, then their results. */
const weather = (asked: UpstreamRequest) => {
  const heard = toolResults(asked);
  return heard.length === 0
    ? think("I should look.", "signed")
        .say("Let me see.")
        .call("get_weather", { city: "Oslo" })
        .call("get_weather", { city: 'R"ome' })
        .usage(USAGE)
    : say(`They say: ${heard.join(" ")}`).usage(USAGE);
};

describe.each([
  ["chat completions", false],
  ["responses", true],
])("ChatOpenAI on %s", (_name, useResponsesApi) => {
  describe.each(SPOKEN)("on an upstream of %s", (spoken) => {
    const chat = (more: object = {}) =>
      new ChatOpenAI({
        model: modelOn(spoken),
        apiKey: at.gateway.key,
        configuration: { baseURL: `${at.gateway.url}/v1` },
        useResponsesApi,
        maxRetries: 0,
        ...more,
      });
    const hello = [new SystemMessage("Be brief."), new HumanMessage("Hello, wörld 🌍")];

    it("invoke", async () => {
      upstreamSays(think("Hm.", "signed").say("Héllo 🌍 there").usage(USAGE));
      const answer = await chat({ temperature: 0.5, maxTokens: 500 }).invoke(hello);
      expect(answer.text).toBe("Héllo 🌍 there");
      expect(answer.usage_metadata).toMatchObject({
        input_tokens: 150,
        output_tokens: 20,
        total_tokens: 170,
        input_token_details: { cache_read: 50 },
        output_token_details: { reasoning: 8 },
      });
      expect(at.asked().map(({ path }) => path)).toEqual([pathOf[spoken]]);
      for (const words of ["Be brief.", "Hello, wörld 🌍", "0.5", "500"])
        expect(sent(0)).toContain(words);
    });

    it("stream, delta by delta, with usage", async () => {
      upstreamSays(think("Hm.", "signed").say("one two three four").usage(USAGE));
      const pieces: string[] = [];
      let whole: AIMessageChunk | undefined;
      for await (const chunk of await chat().stream(hello)) {
        if (chunk.text !== "") pieces.push(chunk.text);
        whole = whole?.concat(chunk) ?? chunk;
      }
      expect(pieces).toEqual(["one", " two", " three", " four"]);
      expect(whole!.text).toBe("one two three four");
      expect(whole!.usage_metadata).toMatchObject({ input_tokens: 150, output_tokens: 20 });
    });

    it.each([false, true])("a tools loop (stream: %s)", async (stream) => {
      upstreamSays(weather);
      const bound = chat().bindTools([getWeather]);
      const ask = async (messages: Parameters<typeof bound.invoke>[0]) => {
        if (!stream) return bound.invoke(messages);
        let whole: AIMessageChunk | undefined;
        for await (const chunk of await bound.stream(messages))
          whole = whole?.concat(chunk) ?? chunk;
        return whole!;
      };
      const first = await ask(hello);
      const calls: readonly ToolCall[] = first.tool_calls ?? [];
      expect(calls.map(({ name, args }) => [name, args])).toEqual([
        ["get_weather", { city: "Oslo" }],
        ["get_weather", { city: 'R"ome' }],
      ]);
      const results = await Promise.all(calls.map((call) => getWeather.invoke(call)));
      const last = await ask([...hello, first, ...(results as ToolMessage[])]);
      expect(last.text).toBe('They say: Rain in Oslo. Rain in R"ome.');
      expect(sent(1)).toContain("Let me see.");
    });

    it("structured output", async () => {
      upstreamSays(say('{"city":"Oslo"}'));
      const placed = chat().withStructuredOutput(SCHEMA, { name: "place", method: "jsonSchema" });
      expect(await placed.invoke("Where?")).toEqual({ city: "Oslo" });
      expect(sent(0)).toContain('"additionalProperties":false');
    });

    it("an error, before and inside a stream", async () => {
      for (const path of Object.values(pathOf))
        at.up.setRoutes({ [`POST ${path}`]: errorResponse(400, "That is too long.") });
      await expect(chat().invoke(hello)).rejects.toThrow("That is too long.");
      upstreamSays(say("And").fail("It broke."));
      const read = async () => {
        for await (const _ of await chat().stream(hello));
      };
      await expect(read()).rejects.toThrow("It broke.");
    });
  });
});

const pathOf = {
  "chat-completions": "/v1/chat/completions",
  messages: "/v1/messages",
  responses: "/v1/responses",
};
