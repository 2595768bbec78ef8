// Anthropic's SDK 0.x: key in x-api-key, version 2023-06-01; messages through the gateway to an
// upstream of every protocol.
import Anthropic, { AuthenticationError, BadRequestError } from "anthropic-sdk-0";
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
const COUNTS = { input_tokens: 100, cache_read_input_tokens: 50, output_tokens: 20 };
const sent = (n: number) => JSON.stringify(at.asked()[n]!.json());
const ask = (model: string): Anthropic.MessageCreateParamsNonStreaming => ({
  model,
  max_tokens: 3000,
  temperature: 0.5,
  system: [{ type: "text", text: "Be brief.", cache_control: { type: "ephemeral" } }],
  messages: [{ role: "user", content: "Hello, wörld 🌍" }],
});
const SCHEMA = {
  type: "object" as const,
  properties: { city: { type: "string" } },
  required: ["city"],
};
/** Two parallel tools, then another one, then the last result. */
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

describe.each(SPOKEN)("messages on an upstream of %s", (spoken) => {
  const model = modelOn(spoken);

  it("non-streaming", async () => {
    at.up.setRoutes(scriptedModel(say("Héllo 🌍 there").usage(USAGE)));
    const answer = await client.messages.create(ask(model));
    expect(answer.content).toMatchObject([{ type: "text", text: "Héllo 🌍 there" }]);
    expect(answer).toMatchObject({ model, stop_reason: "end_turn", usage: COUNTS });
    for (const words of ["Be brief.", "Hello, wörld 🌍", "0.5", "3000"])
      expect(sent(0)).toContain(words);
    expect(at.up.bills).toMatchObject([
      { key: `sk-upstream-${spoken.split("-")[0]}`, reportedUsage: USAGE },
    ]);
  });

  it("every event of a stream, as sent", async () => {
    at.up.setRoutes(scriptedModel(think("Hm.", "signed").say("one two").usage(USAGE)));
    const types: string[] = [];
    for await (const event of await client.messages.create({ ...ask(model), stream: true }))
      if (types.at(-1) !== event.type) types.push(event.type);
    const block = ["content_block_start", "content_block_delta", "content_block_stop"];
    expect(types).toEqual(["message_start", ...block, ...block, "message_delta", "message_stop"]);
  });

  it("the stream helper", async () => {
    at.up.setRoutes(
      scriptedModel(think("Hm, hm.", "signed").say("one two three four").usage(USAGE)),
    );
    const { temperature: _, ...rest } = ask(model);
    const stream = client.messages.stream({
      ...rest,
      thinking: { type: "enabled", budget_tokens: 2000 },
    });
    const pieces: string[] = [];
    const thoughts: string[] = [];
    stream.on("text", (piece) => pieces.push(piece));
    stream.on("thinking", (piece) => thoughts.push(piece));
    const answer = await stream.finalMessage();
    expect(pieces).toEqual(["one", " two", " three", " four"]);
    expect(thoughts.join("")).toBe("Hm, hm.");
    expect(answer.content.map(({ type }) => type)).toEqual(["thinking", "text"]);
    expect(answer).toMatchObject({ model, usage: COUNTS });
  });

  it.each([false, true])("the tool runner (stream: %s)", async (stream) => {
    at.up.setRoutes(scriptedModel(weather));
    const ran: string[] = [];
    const runner = client.beta.messages.toolRunner({
      ...ask(model),
      stream,
      tools: [
        {
          type: "custom" as const,
          name: "get_weather",
          description: "The weather in a city",
          input_schema: SCHEMA,
          parse: (input: unknown) => input as { city: string },
          run: ({ city }: { city: string }) => {
            ran.push(city);
            return `Rain in ${city}.`;
          },
        },
      ],
    });
    const last = await runner.runUntilDone();
    expect(ran).toEqual(["Oslo", 'R"ome', "Paris"]);
    expect(last.content.at(-1)).toMatchObject({ text: "They say: Rain in Paris." });
    expect(at.asked()).toHaveLength(3);
    for (const words of ["Let me see.", "Rain in Oslo.", "Rain in Paris."])
      expect(sent(2)).toContain(words);
    // The provider that signed reasoning gets its own signature back, and no other does.
    if (spoken === "chat-completions") expect(sent(2)).not.toMatch(/tg1\.|signed/);
    else expect(sent(2)).toContain('"signed"');
  });

  it("a call without arguments has an empty object", async () => {
    at.up.setRoutes(scriptedModel(call("now", "")));
    const answer = await client.messages.stream(ask(model)).finalMessage();
    expect(answer.content).toMatchObject([{ type: "tool_use", name: "now", input: {} }]);
    expect(answer.stop_reason).toBe("tool_use");
  });

  it("structured output is parsed", async () => {
    at.up.setRoutes(scriptedModel(say('{"city":"Oslo"}')));
    const answer = await client.messages.parse({
      ...ask(model),
      output_config: {
        format: { type: "json_schema", schema: { ...SCHEMA, additionalProperties: false } },
      },
    });
    expect(answer.content).toMatchObject([{ type: "text", text: '{"city":"Oslo"}' }]);
    expect(sent(0)).toContain('"additionalProperties":false');
  });

  it("counting tokens", async () => {
    const { messages, system } = ask(model);
    const { input_tokens: count } = await client.messages.countTokens({
      model,
      messages,
      ...(system && { system }),
    });
    if (spoken === "messages") expect(count, "upstream's own count").toBe(42);
    else expect(count).toBeGreaterThan(0);
  });

  it("an error, before and inside a stream", async () => {
    const raised = (work: Promise<unknown>) =>
      work.then(
        () => "an answer",
        (error: unknown) => error,
      );
    for (const path of ["/v1/chat/completions", "/v1/messages", "/v1/responses"])
      at.up.setRoutes({
        [`POST ${path}`]: errorResponse(400, "prompt is too long: 9 tokens > 8 maximum"),
      });
    const refused = await raised(client.messages.create(ask(model)));
    expect(refused).toBeInstanceOf(BadRequestError);
    expect(String(refused)).toContain("prompt is too long: 9 tokens > 8 maximum");
    at.up.setRoutes(scriptedModel(say("And").fail("It broke.")));
    const broken = await raised(client.messages.stream(ask(model)).finalMessage());
    expect(String(broken)).toContain("It broke.");
  });
});

it("an unknown key", async () => {
  const { url: baseURL } = at.gateway;
  const stranger = new Anthropic({ apiKey: "tg_nobody", baseURL, maxRetries: 0 });
  const work = stranger.messages.create(ask(modelOn("messages")));
  await expect(work).rejects.toBeInstanceOf(AuthenticationError);
  expect(at.asked()).toEqual([]);
});
