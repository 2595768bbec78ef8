// OpenAI's SDK: chat completions and responses, through the gateway to an upstream of every
// protocol.
import OpenAI, {
  APIConnectionError,
  APIError,
  AuthenticationError,
  BadRequestError,
  InternalServerError,
  NotFoundError,
  RateLimitError,
} from "openai";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import {
  errorResponse,
  say,
  scriptedModel,
  think,
  toolResults,
  type UpstreamRequest,
  type ScriptedRoutes,
} from "tollgate/testing";
import {
  freshOn,
  startGatewayWithUpstream,
  modelOn,
  SPOKEN,
  type GatewayWithUpstream,
} from "./gateway-with-upstream.ts";

let at: GatewayWithUpstream;
let client: OpenAI;
beforeAll(async () => {
  at = await startGatewayWithUpstream();
  client = new OpenAI({ apiKey: at.gateway.key, baseURL: `${at.gateway.url}/v1`, maxRetries: 0 });
});
afterAll(() => at[Symbol.asyncDispose]());
afterEach(() => at.up.reset());

const upstreamSays = (routes: ScriptedRoutes) => at.up.setRoutes(routes);
const USAGE = { input: 100, cache_read: 50, output: 20, reasoning: 8 };
/** Calls a tool, then repeats its result. */
const weather = (asked: UpstreamRequest) => {
  const [heard] = toolResults(asked);
  return heard === undefined
    ? think("I should look.").call("get_weather", { city: "Oslo" }).usage(USAGE)
    : say(`It says: ${heard}`).usage(USAGE);
};
const SCHEMA = {
  type: "object",
  properties: { city: { type: "string" } },
  required: ["city"],
  additionalProperties: false,
} as const;

describe.each(SPOKEN)("chat completions on an upstream of %s", (spoken) => {
  const model = modelOn(spoken);
  const messages: OpenAI.ChatCompletionMessageParam[] = [
    { role: "user", content: "Hello, wörld 🌍" },
  ];

  it("non-streaming", async () => {
    upstreamSays(scriptedModel(think("Hm.").say("Héllo 🌍 there").usage(USAGE)));
    const answer = await client.chat.completions.create({ model, messages });
    expect(answer.model).toBe(model);
    expect(answer.choices[0]!.message.content).toBe("Héllo 🌍 there");
    expect(answer.choices[0]!.finish_reason).toBe("stop");
    expect(answer.usage).toMatchObject({
      prompt_tokens: 150,
      completion_tokens: 20,
      total_tokens: 170,
      prompt_tokens_details: { cached_tokens: 50 },
      completion_tokens_details: { reasoning_tokens: 8 },
    });
    expect(answer._request_id).toBeTruthy();
    expect(at.up.bills).toMatchObject([
      { key: `sk-upstream-${spoken.split("-")[0]}`, reportedUsage: USAGE },
    ]);
    expect(JSON.stringify(at.asked()[0]!.json())).toContain("Hello, wörld 🌍");
  });

  it("streaming, delta by delta, with usage if requested", async () => {
    upstreamSays(scriptedModel(say("one two three four").usage(USAGE)));
    const stream = client.chat.completions.stream({
      model,
      messages,
      stream_options: { include_usage: true },
    });
    const pieces: string[] = [];
    stream.on("content", (piece) => pieces.push(piece));
    const answer = await stream.finalChatCompletion();
    expect(pieces).toEqual(["one", " two", " three", " four"]);
    expect(answer.choices[0]!.message.content).toBe("one two three four");
    expect(answer.model).toBe(model);
    expect(answer.usage).toMatchObject({ prompt_tokens: 150, completion_tokens: 20 });
  });

  it("streaming, without usage if not requested", async () => {
    upstreamSays(scriptedModel(say("one two").usage(USAGE)));
    const usages: unknown[] = [];
    for await (const chunk of await client.chat.completions.create({
      model,
      messages,
      stream: true,
    }))
      if (chunk.usage) usages.push(chunk.usage);
    expect(usages).toEqual([]);
    expect(at.up.bills[0]!.reportedUsage, "and yet the gateway heard it").toEqual(USAGE);
  });

  it.each([false, true])("a tools loop (stream: %s)", async (stream) => {
    upstreamSays(scriptedModel(weather));
    const asked: unknown[] = [];
    const tools = [
      {
        type: "function" as const,
        function: {
          name: "get_weather",
          description: "The weather in a city",
          parameters: SCHEMA,
          parse: JSON.parse as (args: string) => { city: string },
          function: (args: { city: string }) => {
            asked.push(args);
            return "Rain.";
          },
        },
      },
    ];
    // Its types require these literals inside the call.
    const about: any = { model, messages, tools };
    const { completions } = client.chat;
    const runner = stream
      ? completions.runTools({ ...about, stream: true })
      : completions.runTools(about);
    expect(await runner.finalContent()).toBe("It says: Rain.");
    expect(asked).toEqual([{ city: "Oslo" }]);
    expect(at.asked()).toHaveLength(2);
  });

  it("parallel calls, each with its own arguments", async () => {
    upstreamSays(
      scriptedModel(
        say("Two things.")
          .call("a", { n: 1 })
          .call("b", { n: 2, deep: { x: ['"'] } }),
      ),
    );
    const { choices } = await client.chat.completions
      .stream({
        model,
        messages,
        tools: ["a", "b"].map((name) => ({
          type: "function" as const,
          function: { name, parameters: { type: "object" } },
        })),
      })
      .finalChatCompletion();
    const [choice] = choices;
    expect(choice!.finish_reason).toBe("tool_calls");
    const calls = choice!.message.tool_calls!.map((call: any) => [
      call.function.name,
      JSON.parse(call.function.arguments),
    ]);
    expect(calls).toEqual([
      ["a", { n: 1 }],
      ["b", { n: 2, deep: { x: ['"'] } }],
    ]);
    expect(new Set(choice!.message.tool_calls!.map(({ id }) => id)).size).toBe(2);
  });

  it("reports truncation at the token limit", async () => {
    upstreamSays(scriptedModel(say("And so").finish("length")));
    const { choices } = await client.chat.completions.create({ model, messages, max_tokens: 16 });
    expect(choices[0]!.finish_reason).toBe("length");
  });

  it("structured output is parsed", async () => {
    upstreamSays(scriptedModel(say('{"city":"Oslo"}')));
    const { choices } = await client.chat.completions.parse({
      model,
      messages,
      response_format: {
        type: "json_schema",
        json_schema: { name: "place", strict: true, schema: SCHEMA },
      },
    });
    expect(JSON.parse(choices[0]!.message.content!)).toEqual({ city: "Oslo" });
    expect(String(at.asked()[0]!.body)).toContain("json_schema");
  });
});

describe.each(SPOKEN)("responses on an upstream of %s", (spoken) => {
  const model = modelOn(spoken);

  it("non-streaming", async () => {
    upstreamSays(scriptedModel(think("Hm.").say("Héllo 🌍").usage(USAGE)));
    const answer = await client.responses.create({ model, input: "Hello" });
    expect(answer.output_text).toBe("Héllo 🌍");
    expect(answer.model).toBe(model);
    expect(answer.status).toBe("completed");
    expect(answer.usage).toMatchObject({ input_tokens: 150, output_tokens: 20, total_tokens: 170 });
  });

  it("streaming", async () => {
    upstreamSays(scriptedModel(think("Hm, hm.").say("one two three").usage(USAGE)));
    const stream = client.responses.stream({ model, input: "Hello" });
    const pieces: string[] = [];
    stream.on("response.output_text.delta", ({ delta }) => pieces.push(delta));
    const answer = await stream.finalResponse();
    expect(pieces.join("")).toBe("one two three");
    expect(answer.output_text).toBe("one two three");
    expect(answer.output.map(({ type }) => type)).toEqual(["reasoning", "message"]);
    expect(answer.usage).toMatchObject({ input_tokens: 150, output_tokens: 20 });
  });

  it.each([false, true])("a tools loop with its own history (stream: %s)", async (stream) => {
    upstreamSays(scriptedModel(weather));
    const tools = [
      { type: "function" as const, name: "get_weather", parameters: SCHEMA, strict: true },
    ];
    const input: OpenAI.Responses.ResponseInput = [{ role: "user", content: "The weather?" }];
    const ask = () => {
      const request = {
        model,
        input,
        tools,
        store: false,
        include: ["reasoning.encrypted_content" as const],
      };
      return stream
        ? client.responses.stream(request).finalResponse()
        : client.responses.create(request);
    };
    const first = await ask();
    const [call] = first.output.flatMap((item) => (item.type === "function_call" ? [item] : []));
    expect(JSON.parse(call!.arguments)).toEqual({ city: "Oslo" });
    input.push(...(first.output as OpenAI.Responses.ResponseInput));
    input.push({ type: "function_call_output", call_id: call!.call_id, output: "Rain." });
    expect((await ask()).output_text).toBe("It says: Rain.");
  });

  it("structured output is parsed", async () => {
    upstreamSays(scriptedModel(say('{"city":"Oslo"}')));
    const answer = await client.responses.parse({
      model,
      input: "Where?",
      text: { format: { type: "json_schema", name: "place", strict: true, schema: SCHEMA } },
    });
    expect(JSON.parse(answer.output_text)).toEqual({ city: "Oslo" });
  });

  it("reports truncation at the token limit as incomplete", async () => {
    upstreamSays(scriptedModel(say("And so").finish("length")));
    const answer = await client.responses.create({ model, input: "Hello", max_output_tokens: 16 });
    expect(answer.status).toBe("incomplete");
    expect(answer.incomplete_details).toEqual({ reason: "max_output_tokens" });
  });
});

describe("typed errors", () => {
  const asked = {
    model: modelOn("chat-completions"),
    messages: [{ role: "user" as const, content: "Hi" }],
  };
  const raised = (work: Promise<unknown>) =>
    work.then(
      () => "an answer",
      (error: unknown) => error,
    ) as Promise<any>;

  it("an unknown key", async () => {
    const stranger = new OpenAI({
      apiKey: "tg_nobody",
      baseURL: `${at.gateway.url}/v1`,
      maxRetries: 0,
    });
    const error = await raised(stranger.chat.completions.create(asked));
    expect(error).toBeInstanceOf(AuthenticationError);
    expect(error.requestID).toBeTruthy();
    expect(at.asked()).toHaveLength(0);
  });

  it("an unknown model, with the nearest name", async () => {
    const error = await raised(
      client.chat.completions.create({ ...asked, model: "up-chta/model" }),
    );
    expect(error).toBeInstanceOf(NotFoundError);
    expect(error).toMatchObject({ code: "model_not_found" });
    expect(error.message).toContain("up-chat");
  });

  it("an invalid request, with the field", async () => {
    const error = await raised(
      client.chat.completions.create({ ...asked, stop: ["a", "b", "c", "d", "e"] }),
    );
    expect(error).toBeInstanceOf(BadRequestError);
    expect(error.param).toContain("stop");
  });

  describe.each(SPOKEN)("from an upstream of %s", (spoken) => {
    it.each<[number, string, new (...args: any[]) => APIError, number]>([
      [400, "Bad thing.", BadRequestError, 400],
      [429, "Slow down.", RateLimitError, 429],
      [503, "Busy.", InternalServerError, 503],
      [401, "Bad key sk-upstream-chat.", InternalServerError, 502],
      [500, "Oops.", InternalServerError, 500],
    ])("%i is converted to the gateway's status", async (status, message, kind, becomes) => {
      const model = freshOn(spoken);
      upstreamSays({
        "*": errorResponse(status, message, { retryAfter: "7" }),
        ...refusing(status, message),
      });
      for (const work of [
        () => client.chat.completions.create({ ...asked, model }),
        () => client.chat.completions.stream({ ...asked, model }).finalChatCompletion(),
        () => client.responses.create({ model, input: "Hi" }),
      ]) {
        const error = await raised(work());
        expect(error).toBeInstanceOf(kind);
        expect(error.status).toBe(becomes);
        expect(error.message).not.toContain("sk-upstream");
        if (becomes === status && status < 500) expect(error.message).toContain(message);
      }
    });
  });

  it("an unreachable gateway", async () => {
    const nowhere = new OpenAI({ apiKey: "k", baseURL: "http://127.0.0.1:9/v1", maxRetries: 0 });
    expect(await raised(nowhere.chat.completions.create(asked))).toBeInstanceOf(APIConnectionError);
  });
});

const refusing = (status: number, message: string): ScriptedRoutes =>
  Object.fromEntries(
    ["/v1/chat/completions", "/v1/messages", "/v1/responses"].map((path) => [
      `POST ${path}`,
      errorResponse(status, message, { retryAfter: "7" }),
    ]),
  );
