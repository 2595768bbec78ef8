// Anthropic's SDK: messages through the gateway to an upstream of every protocol.
import Anthropic, {
  APIError,
  AuthenticationError,
  BadRequestError,
  InternalServerError,
  NotFoundError,
  RateLimitError,
} from "@anthropic-ai/sdk";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import {
  call,
  errorResponse,
  say,
  scriptedModel,
  think,
  toolResults,
  type UpstreamRequest,
} from "tollgate/testing";
import {
  freshOn,
  startGatewayWithUpstream,
  modelOn,
  SPOKEN,
  type GatewayWithUpstream,
} from "./gateway-with-upstream.ts";

let at: GatewayWithUpstream;
let client: Anthropic;
beforeAll(async () => {
  at = await startGatewayWithUpstream();
  client = new Anthropic({ apiKey: at.gateway.key, baseURL: at.gateway.url, maxRetries: 0 });
});
afterAll(() => at[Symbol.asyncDispose]());
afterEach(() => at.up.reset());

const USAGE = { input: 100, cache_read: 50, output: 20, reasoning: 8 };
const ask = (model: string): Anthropic.MessageCreateParamsNonStreaming => ({
  model,
  max_tokens: 1000,
  messages: [{ role: "user", content: "Hello, wörld 🌍" }],
});
const TOOLS: Anthropic.Tool[] = [
  {
    name: "get_weather",
    description: "The weather in a city",
    input_schema: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
  },
];
/** Calls two tools in parallel, then repeats their results. */
const weather = (asked: UpstreamRequest) => {
  const heard = toolResults(asked);
  return heard.length === 0
    ? think("I should look.", "signed")
        .call("get_weather", { city: "Oslo" })
        .call("get_weather", { city: "Rome" })
        .usage(USAGE)
    : say(`They say: ${heard.join(" ")}`).usage(USAGE);
};

describe.each(SPOKEN)("messages on an upstream of %s", (spoken) => {
  const model = modelOn(spoken);

  it("non-streaming", async () => {
    at.up.setRoutes(scriptedModel(say("Héllo 🌍 there").usage(USAGE)));
    const answer = await client.messages.create(ask(model));
    expect(answer.model).toBe(model);
    expect(answer.content).toMatchObject([{ type: "text", text: "Héllo 🌍 there" }]);
    expect(answer.stop_reason).toBe("end_turn");
    expect(answer.usage).toMatchObject({
      input_tokens: 100,
      cache_read_input_tokens: 50,
      output_tokens: 20,
    });
    expect(answer._request_id).toBeTruthy();
    expect(JSON.stringify(at.asked()[0]!.json())).toContain("Hello, wörld 🌍");
    expect(at.up.bills).toMatchObject([
      { key: `sk-upstream-${spoken.split("-")[0]}`, reportedUsage: USAGE },
    ]);
  });

  it("streaming, delta by delta", async () => {
    at.up.setRoutes(scriptedModel(say("one two three four").usage(USAGE)));
    const stream = client.messages.stream(ask(model));
    const pieces: string[] = [];
    stream.on("text", (piece) => pieces.push(piece));
    const answer = await stream.finalMessage();
    expect(pieces).toEqual(["one", " two", " three", " four"]);
    expect(answer.model).toBe(model);
    expect(answer.usage).toMatchObject({
      input_tokens: 100,
      cache_read_input_tokens: 50,
      output_tokens: 20,
    });
  });

  it.each([false, true])("thinking comes first (stream: %s)", async (stream) => {
    at.up.setRoutes(scriptedModel(think("Hm, let me see.", "signed").say("Yes.").usage(USAGE)));
    const request = {
      ...ask(model),
      max_tokens: 4000,
      thinking: { type: "enabled" as const, budget_tokens: 2000 },
    };
    const answer = stream
      ? await client.messages.stream(request).finalMessage()
      : await client.messages.create(request);
    expect(answer.content).toMatchObject([
      { type: "thinking", thinking: "Hm, let me see." },
      { type: "text", text: "Yes." },
    ]);
    const [thought] = answer.content as [Anthropic.ThinkingBlock];
    expect(typeof thought.signature).toBe("string");
    if (spoken === "messages") expect(thought.signature).toBe("signed");
  });

  it.each([false, true])(
    "a tools loop with thinking and two parallel calls (stream: %s)",
    async (stream) => {
      at.up.setRoutes(scriptedModel(weather));
      const request = { ...ask(model), tools: TOOLS };
      const send = (body: Anthropic.MessageCreateParamsNonStreaming) =>
        stream ? client.messages.stream(body).finalMessage() : client.messages.create(body);
      const first = await send(request);
      expect(first.stop_reason).toBe("tool_use");
      const calls = first.content.flatMap((block) => (block.type === "tool_use" ? [block] : []));
      expect(calls.map(({ input }) => input)).toEqual([{ city: "Oslo" }, { city: "Rome" }]);
      const results = calls.map(({ id, input }): Anthropic.ToolResultBlockParam => ({
        type: "tool_result",
        tool_use_id: id,
        content: `Rain in ${(input as { city: string }).city}.`,
      }));
      const second = await send({
        ...request,
        messages: [
          ...request.messages,
          { role: "assistant", content: first.content },
          { role: "user", content: results },
        ],
      });
      expect(second.content).toMatchObject([{ text: "They say: Rain in Oslo. Rain in Rome." }]);
      // The provider that signed reasoning gets its own signature back, and no other does.
      const sent = JSON.stringify(at.asked()[1]!.json());
      if (spoken === "chat-completions") expect(sent).not.toContain("tg1.");
      else expect(sent).toContain('"signed"');
    },
  );

  it("the tool runner, including threads", async () => {
    at.up.setRoutes(scriptedModel(weather));
    const ran: unknown[] = [];
    const runner = client.beta.messages.toolRunner({
      ...ask(model),
      tools: [
        {
          name: "get_weather",
          description: "The weather in a city",
          input_schema: TOOLS[0]!.input_schema,
          type: "custom" as const,
          parse: (input: unknown) => input as { city: string },
          run: ({ city }: { city: string }) => {
            ran.push(city);
            return `Rain in ${city}.`;
          },
        },
      ],
    });
    const last = await runner;
    expect(ran.toSorted()).toEqual(["Oslo", "Rome"]);
    expect(last.content.at(-1)).toMatchObject({
      type: "text",
      text: "They say: Rain in Oslo. Rain in Rome.",
    });
  });

  it("reports truncation at the token limit", async () => {
    at.up.setRoutes(scriptedModel(say("And so").finish("length")));
    expect((await client.messages.create(ask(model))).stop_reason).toBe("max_tokens");
  });

  it("a call without arguments has an empty object", async () => {
    at.up.setRoutes(scriptedModel(call("now", "")));
    const answer = await client.messages.stream(ask(model)).finalMessage();
    expect(answer.content).toMatchObject([{ type: "tool_use", name: "now", input: {} }]);
  });

  it("counting tokens", async () => {
    const { input_tokens: count } = await client.messages.countTokens({
      model,
      messages: ask(model).messages,
    });
    expect(count).toBeGreaterThan(0);
    if (spoken === "messages") expect(count, "upstream's own count").toBe(42);
    expect(at.asked()).toEqual([]);
  });
});

describe("typed errors", () => {
  const raised = (work: Promise<unknown>) =>
    work.then(
      () => "an answer",
      (error: unknown) => error,
    ) as Promise<any>;

  it("an unknown key", async () => {
    const stranger = new Anthropic({ apiKey: "tg_nobody", baseURL: at.gateway.url, maxRetries: 0 });
    const error = await raised(stranger.messages.create(ask(modelOn("messages"))));
    expect(error).toBeInstanceOf(AuthenticationError);
    expect(error.requestID).toBeTruthy();
    expect(at.asked()).toEqual([]);
  });

  it("an unknown model", async () => {
    const error = await raised(client.messages.create(ask("nowhere/model")));
    expect(error).toBeInstanceOf(NotFoundError);
    expect(error.error).toMatchObject({ type: "error", error: { type: "not_found_error" } });
  });

  it("an invalid request, with the field", async () => {
    const { max_tokens: _, ...request } = ask(modelOn("messages"));
    const error = await raised(client.messages.create(request as never));
    expect(error).toBeInstanceOf(BadRequestError);
    expect(error.message).toContain("max_tokens");
  });

  describe.each(SPOKEN)("from an upstream of %s", (spoken) => {
    it.each<[number, string, new (...args: any[]) => APIError, number]>([
      [400, "prompt is too long: 210000 tokens > 200000 maximum", BadRequestError, 400],
      [429, "Slow down.", RateLimitError, 429],
      [503, "Busy.", InternalServerError, 503],
      [401, "Bad key sk-upstream-messages.", InternalServerError, 502],
      [500, "Oops.", InternalServerError, 500],
    ])("%i is converted to the gateway's status", async (status, message, kind, becomes) => {
      for (const path of ["/v1/chat/completions", "/v1/messages", "/v1/responses"])
        at.up.setRoutes({ [`POST ${path}`]: errorResponse(status, message, { retryAfter: "7" }) });
      const model = freshOn(spoken);
      for (const work of [
        () => client.messages.create(ask(model)),
        () => client.messages.stream(ask(model)).finalMessage(),
      ]) {
        const error = await raised(work());
        expect(error).toBeInstanceOf(kind);
        expect(error.status).toBe(becomes);
        expect(error.message).not.toContain("sk-upstream");
        expect(error.error.type).toBe("error");
        if (status < 429 && becomes === status) expect(error.message).toContain(message);
        if (status === 429) expect(error.headers.get("retry-after")).toBeTruthy();
      }
    });
  });
});
