// The official SDK with a server that consists of this codec's server half.
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { Ajv } from "ajv";
import OpenAI, { APIError, BadRequestError, RateLimitError } from "openai";
import { makeParseableTextFormat } from "openai/lib/parser";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  ERRORS,
  getFault,
  collectResponse,
  type Body,
  type ChatRequest,
  type Fault,
  type ModelEvent,
} from "tollgate/plugin";
import { responses } from "tollgate/protocols/responses";
import { createResponseContext, encodeText } from "tollgate/testing";

const server = responses().server!;
const valid = new Ajv({ strict: false }).compile(server.schema as object);

/** The model's behavior, by the user's last message. */
type Script = (
  request: ChatRequest,
) => readonly ModelEvent[] | { fault: Fault; after?: readonly ModelEvent[] };
let script: Script;
let asked: ChatRequest[] = [];

const say = (index: number, text: string): ModelEvent[] => [
  { type: "open", index, block: { type: "text" } },
  ...[...text].map((c): ModelEvent => ({ type: "delta", index, text: c })),
  { type: "close", index },
];
const call = (
  index: number,
  name: string,
  args: string,
  tool: "function" | "custom" = "function",
): ModelEvent[] => [
  { type: "open", index, block: { type: "call", id: `call_${index}`, name, tool } },
  { type: "delta", index, text: args },
  { type: "close", index },
];
const think = (index: number, text: string): ModelEvent[] => [
  { type: "open", index, block: { type: "reasoning" } },
  { type: "delta", index, text },
  { type: "proof", index, proof: { origin: "messages", kind: "signature", data: "sig" } },
  { type: "close", index },
];
const answer = (...said: ModelEvent[][]): ModelEvent[] => [
  { type: "start" },
  ...said.flat(),
  { type: "usage", usage: { input: 10, cache_read: 2, output: 5, reasoning: 1 } },
  { type: "finish", reason: "stop" },
];

let http: Server;
let client: OpenAI;
beforeAll(async () => {
  let n = 0;
  http = createServer((req, res) => {
    const parts: Buffer[] = [];
    req.on("data", (part: Buffer) => parts.push(part));
    req.on("end", () => {
      const id = `x${++n}`;
      const refuse = (fault: Fault) => {
        const { status, body } = server.encodeFault(fault, { id });
        res.writeHead(status ?? ERRORS[fault.kind][0], {
          "content-type": "application/json",
          ...server.encodeHeaders!({ id, limits: [], now: 0 }),
        } as Record<string, string>);
        res.end(JSON.stringify(body));
      };
      try {
        const body = JSON.parse(Buffer.concat(parts).toString()) as Body;
        if (!valid(body)) return refuse({ kind: "invalid", message: valid.errors![0]!.message! });
        server.analyze(body);
        const request = server.decodeRequest(body, "generate") as ChatRequest;
        asked.push(request);
        const told = script(request);
        const to = createResponseContext({
          id,
          model: String(body["model"]),
          stream: request.stream,
          body,
        });
        const type = request.stream ? "text/event-stream" : "application/json";
        if (!("fault" in told)) {
          res.writeHead(200, { "content-type": type });
          return res.end(
            request.stream
              ? encodeText(server, told, to)
              : JSON.stringify(server.encodeResponse(collectResponse(told), to)),
          );
        }
        if (!told.after) return refuse(told.fault);
        res.writeHead(200, { "content-type": type });
        const encoder = server.createEncoder((text) => res.write(text), to);
        for (const e of told.after) encoder.writeEvent(e);
        encoder.writeFault(told.fault);
        return res.end();
      } catch (error) {
        return refuse(getFault(error) ?? { kind: "internal", message: String(error) });
      }
    });
  });
  await new Promise<void>((resolve) => http.listen(0, "127.0.0.1", resolve));
  const { port } = http.address() as AddressInfo;
  client = new OpenAI({ baseURL: `http://127.0.0.1:${port}/v1`, apiKey: "k", maxRetries: 0 });
});
afterAll(() => new Promise((resolve) => http.close(resolve)));

const model = "openai/gpt-6";
const full = answer(
  think(0, "Hmm."),
  say(1, "Hello 🌍"),
  call(2, "get_weather", '{"city":"Oslo"}'),
  call(3, "apply_patch", "*** Begin", "custom"),
);
const tools: OpenAI.Responses.Tool[] = [
  { type: "function", name: "get_weather", parameters: { type: "object" }, strict: false },
  { type: "custom", name: "apply_patch" },
];

describe("the OpenAI SDK", () => {
  it("reads a non-streaming response", async () => {
    script = () => full;
    const response = await client.responses.create({ model, input: "Hi", tools });
    expect(response.output_text).toBe("Hello 🌍");
    expect(response.output.map((item) => item.type)).toEqual([
      "reasoning",
      "message",
      "function_call",
      "custom_tool_call",
    ]);
    expect(response.usage).toMatchObject({ input_tokens: 12, output_tokens: 5, total_tokens: 17 });
    expect(response.model).toBe(model);
  });

  it("reads a stream with its helper, which throws on any defect", async () => {
    script = () => full;
    const stream = client.responses.stream({ model, input: "Hi", tools });
    let text = "";
    stream.on("response.output_text.delta", (e) => (text += e.delta));
    const response = await stream.finalResponse();
    expect(text).toBe("Hello 🌍");
    expect(response.output_text).toBe("Hello 🌍");
    expect(response.output).toHaveLength(4);
  });

  it("reads every type of response", async () => {
    const refusal: ModelEvent[] = [
      { type: "open", index: 0, block: { type: "refusal" } },
      { type: "delta", index: 0, text: "No." },
      { type: "close", index: 0 },
    ];
    const pictured: ModelEvent[] = [
      { type: "open", index: 0, block: { type: "image" } },
      { type: "media", index: 0, media: { base64: "AAAA" }, partial: true },
      { type: "media", index: 0, media: { base64: "AAAA" } },
      { type: "close", index: 0 },
    ];
    const cited = say(0, "Rain.").toSpliced(-1, 0, {
      type: "cite",
      index: 0,
      citation: {
        type: "url_citation",
        url: "https://a.example",
        title: "A",
        start_index: 0,
        end_index: 2,
      },
    });
    const signedCall = call(0, "get_weather", "{}").toSpliced(-1, 0, {
      type: "proof",
      index: 0,
      proof: { origin: "gemini", kind: "s", data: "d" },
    });
    const hosted: ModelEvent[] = [
      {
        type: "open",
        index: 0,
        block: {
          type: "opaque",
          origin: "responses",
          raw: {
            type: "web_search_call",
            id: "ws_1",
            status: "completed",
            action: { type: "search", query: "x" },
          },
        },
      },
      { type: "close", index: 0 },
    ];
    for (const said of [
      [],
      refusal,
      pictured,
      cited,
      signedCall,
      hosted,
      [...say(0, "a"), ...say(1, "b")],
    ]) {
      script = () => answer(said);
      const response = await client.responses.stream({ model, input: "Hi", tools }).finalResponse();
      expect(response.status).toBe("completed");
    }
    script = () => [
      ...answer(call(0, "get_weather", '{"ci')).slice(0, -1),
      { type: "finish", reason: "length" },
    ];
    const cut = await client.responses.stream({ model, input: "Hi", tools }).finalResponse();
    expect(cut).toMatchObject({
      status: "incomplete",
      incomplete_details: { reason: "max_output_tokens" },
    });
  });

  it("iterates over a raw stream", async () => {
    script = () => full;
    const types: string[] = [];
    for await (const event of await client.responses.create({
      model,
      input: "Hi",
      tools,
      stream: true,
    }))
      types.push(event.type);
    expect(types[0]).toBe("response.created");
    expect(types.at(-1)).toBe("response.completed");
  });

  it("parses structured output", async () => {
    script = () => answer(say(0, '{"city":"Oslo"}'));
    const format = makeParseableTextFormat<{ city: string }>(
      { type: "json_schema", name: "place", schema: { type: "object" }, strict: true },
      (content) => JSON.parse(content),
    );
    const response = await client.responses.parse({ model, input: "Where?", text: { format } });
    expect(response.output_parsed).toEqual({ city: "Oslo" });
    expect(asked.at(-1)!.output.format).toMatchObject({
      type: "schema",
      name: "place",
      strict: true,
    });
  });

  it("runs tools and sends the history back", async () => {
    script = (request) =>
      request.turns.some((t) => t.role === "tool")
        ? answer(say(0, "Rain."))
        : answer(
            think(0, "Look."),
            call(1, "get_weather", '{"city":"Oslo"}'),
            call(2, "get_weather", "{}"),
          );
    const input: OpenAI.Responses.ResponseInput = [{ role: "user", content: "Weather?" }];
    const first = await client.responses.create({ model, input, tools, store: false });
    for (const item of first.output) {
      input.push(item as OpenAI.Responses.ResponseInputItem);
      if (item.type === "function_call")
        input.push({ type: "function_call_output", call_id: item.call_id, output: "Rain" });
    }
    const second = await client.responses.create({ model, input, tools, store: false });
    expect(second.output_text).toBe("Rain.");
    const [, step] = asked.at(-1)!.turns;
    expect(step!.blocks[0]).toEqual({
      type: "reasoning",
      text: "Look.",
      proof: { origin: "messages", kind: "signature", data: "sig" },
    });
  });

  it("raises errors of the right class, with code and field", async () => {
    const raised = async (run: () => Promise<unknown>) =>
      run().then(
        () => undefined,
        (error) => error,
      );
    script = () => ({ fault: { kind: "rate_limited", message: "Slow down." } });
    const slow = await raised(() => client.responses.create({ model, input: "Hi" }));
    expect(slow).toBeInstanceOf(RateLimitError);
    expect(slow).toMatchObject({ code: "rate_limit_exceeded", message: "429 Slow down." });
    const odd = await raised(() =>
      client.responses.create({ model, input: "Hi", tool_choice: "nonsense" as never }),
    );
    expect(odd).toBeInstanceOf(BadRequestError);
    expect(odd).toMatchObject({ param: "tool_choice", code: "invalid_type" });
    expect(odd.requestID).toMatch(/^x\d+$/);
    const none = await raised(() => client.responses.create({ model } as never));
    expect(none).toBeInstanceOf(BadRequestError);
  });

  it("raises an error in mid-stream", async () => {
    for (let n = 0; n < full.length; n++) {
      script = () => ({
        fault: { kind: "upstream", message: "It broke." },
        after: full.slice(0, n),
      });
      await expect(
        client.responses.stream({ model, input: "Hi", tools }).finalResponse(),
      ).rejects.toThrow(APIError);
      const raw = await client.responses.create({ model, input: "Hi", tools, stream: true });
      const all = async () => {
        for await (const event of raw) void event;
      };
      await expect(all()).rejects.toThrow("It broke.");
    }
  });
});
