// Real upstream responses: valid ones are decoded, and anything else is an error, never a hang, a
// crash, or a false success.
import assert from "node:assert/strict";
import { describe, expect, it } from "vitest";
import { getFault, collectResponse, type JsonObject } from "tollgate/plugin";
import { responses } from "tollgate/protocols/responses";
import {
  createResponseContext,
  createCallContext,
  splitChunks,
  decode,
  decodeWhole,
  encodeText,
  comparableContent,
  readRecordings,
  runRelay,
} from "tollgate/testing";
import { judge, replay } from "./oracle.ts";
import { faultFrom } from "./kit.ts";

const { client, server } = responses() as Required<ReturnType<typeof responses>>;
const of = createCallContext({ stream: true });
const to = (body: JsonObject = { input: "Hi" }) =>
  createResponseContext({ stream: true, model: "openai/gpt-6", body });

const sse = (...events: (JsonObject | string)[]) =>
  Buffer.from(
    events
      .map((e) =>
        typeof e === "string" ? e : `event: ${String(e["type"])}\ndata: ${JSON.stringify(e)}\n\n`,
      )
      .join(""),
  );
const response = (more: JsonObject = {}): JsonObject => ({
  id: "resp_up",
  object: "response",
  model: "gpt-6-2026",
  status: "in_progress",
  output: [],
  error: null,
  usage: null,
  ...more,
});
const created = { type: "response.created", sequence_number: 0, response: response() };
const message = {
  id: "msg_1",
  type: "message",
  status: "completed",
  role: "assistant",
  content: [{ type: "output_text", text: "Hi", annotations: [] }],
};
const added = {
  type: "response.output_item.added",
  sequence_number: 1,
  output_index: 0,
  item: { ...message, content: [] },
};
const delta = {
  type: "response.output_text.delta",
  sequence_number: 2,
  item_id: "msg_1",
  output_index: 0,
  content_index: 0,
  delta: "Hi",
};
const done = {
  type: "response.output_item.done",
  sequence_number: 3,
  output_index: 0,
  item: message,
};
const completed = (more: JsonObject = {}) => ({
  type: "response.completed",
  sequence_number: 4,
  response: response({ status: "completed", output: [message], ...more }),
});
const good = [created, added, delta, done, completed()];

describe("an upstream's stream", () => {
  const read = (...events: (JsonObject | string)[]) =>
    collectResponse(decode(client, [sse(...events)], of));
  const wrong = (...events: (JsonObject | string)[]) =>
    faultFrom(() => decode(client, [sse(...events)], of));

  it("is decoded if it is valid", () =>
    expect(read(...good).blocks).toEqual([{ type: "text", text: "Hi" }]));

  it.each<[string, (JsonObject | string)[], string | undefined]>([
    ["rubbish", ["<html><body>Hi</body></html>\n\n"], "truncated"],
    ["nothing", [], "truncated"],
    ["a line that is no JSON", [created, "data: {oops\n\n", completed()], "bad_stream"],
    ["JSON that is no object", [created, "data: 7\n\n", completed()], "bad_stream"],
    ["no end", good.slice(0, 4), "truncated"],
    ["only the end mark", [created, "data: [DONE]\n\n"], "truncated"],
    [
      "an error, flat",
      [created, { type: "error", code: "server_error", message: "It broke." }],
      "server_error",
    ],
    [
      "an error, nested",
      [created, { type: "error", error: { code: "server_error", message: "It broke." } }],
      "server_error",
    ],
    [
      "an error of another kind of server",
      [created, { error: { message: "It broke.", code: 503 } }],
      "503",
    ],
    [
      "a failure",
      [
        created,
        {
          type: "response.failed",
          response: response({
            status: "failed",
            error: { code: "rate_limit_exceeded", message: "Slow down." },
          }),
        },
      ],
      "rate_limit_exceeded",
    ],
    [
      "a call without a name",
      [
        created,
        {
          type: "response.output_item.done",
          output_index: 0,
          item: { type: "function_call", call_id: "c", arguments: "" },
        },
      ],
      "bad_stream",
    ],
    ["a line of 50 MB", [created, `data: "${"x".repeat(50_000_000)}`], undefined],
  ])("with %s is an error", (_what, events, code) => {
    const fault = wrong(...events);
    expect(fault.message).not.toBe("");
    if (code) expect(fault.code).toBe(code);
    assert.throws(
      () => runRelay(client, [sse(...events)], to()),
      (e) => getFault(e) !== undefined,
    );
  });

  it("has errors classified by their code", () => {
    const kind = (code: string, text = "x") =>
      wrong(created, { type: "error", code, message: text }).kind;
    expect(kind("rate_limit_exceeded")).toBe("rate_limited");
    expect(kind("insufficient_quota")).toBe("upstream_quota");
    expect(kind("context_length_exceeded")).toBe("context_length");
    expect(kind("server_is_overloaded")).toBe("overloaded");
    expect(kind("x", "prompt is too long")).toBe("context_length");
  });

  it("may omit content that it sends later", () => {
    expect(read(created, done, completed()).blocks).toEqual([{ type: "text", text: "Hi" }]);
    expect(read(created, completed()).blocks).toEqual([{ type: "text", text: "Hi" }]);
    expect(read(completed()).blocks).toEqual([{ type: "text", text: "Hi" }]);
    expect(read(created, added, { ...delta, delta: "H" }, done, completed()).blocks).toEqual([
      { type: "text", text: "Hi" },
    ]);
  });

  it("may repeat content, which is decoded once", () => {
    const early = { ...added, item: message };
    expect(read(created, early, delta, done, done, completed(), completed()).blocks).toEqual([
      { type: "text", text: "Hi" },
    ]);
  });

  it("may have gaps between its items", () => {
    const far = (e: JsonObject) => ({ ...e, output_index: 7 });
    const end = completed({ output: [] });
    expect(read(created, far(added), far(delta), far(done), end).blocks).toHaveLength(1);
  });

  it("may be a non-streaming response", () => {
    const json = { "content-type": "application/json" };
    const body = Buffer.from(JSON.stringify(completed().response));
    const events = decode(client, splitChunks([body], 7), of, json);
    expect(collectResponse(events).blocks).toEqual([{ type: "text", text: "Hi" }]);
  });

  it("with impossible counts is not trusted", () => {
    const counted = (usage: JsonObject) => read(created, completed({ usage })).usage;
    expect(counted({ input_tokens: -5, output_tokens: 3 })).toEqual({ output: 3 });
    expect(counted({ input_tokens: 1e300, output_tokens: 3 })).toEqual({ output: 3 });
    expect(counted({ input_tokens: "7", output_tokens: 1.5 })).toEqual({});
    expect(
      counted({ input_tokens: 5, input_tokens_details: { cached_tokens: 9 }, output_tokens: 1 }),
    ).toEqual({ input: 0, cache_read: 9, output: 1 });
    // Reasoning that was counted outside of the output.
    expect(
      counted({
        input_tokens: 5,
        output_tokens: 2,
        output_tokens_details: { reasoning_tokens: 3 },
        total_tokens: 10,
      }),
    ).toEqual({ input: 5, output: 5, reasoning: 3 });
  });
});

describe("an upstream's non-streaming response", () => {
  const read = (body: unknown) =>
    collectResponse(
      decodeWhole(client, Buffer.from(typeof body === "string" ? body : JSON.stringify(body)), of),
    );

  it.each<[string, unknown]>([
    ["a page", "<html>"],
    ["an error under a 200", { error: { message: "No." } }],
    ["an object without output", {}],
    ["a failure", response({ status: "failed", error: { code: "server_error", message: "No." } })],
    ["an answer that is not finished", response({ status: "queued" })],
    ["a list", []],
  ])("that is %s is an error", (_what, body) => {
    assert.throws(
      () => read(body),
      (e) => getFault(e) !== undefined,
    );
    const bytes = Buffer.from(typeof body === "string" ? body : JSON.stringify(body));
    const at = createResponseContext({ body: { input: "Hi" } });
    if (_what !== "an object without output" && _what !== "an answer that is not finished")
      assert.throws(
        () => runRelay(client, [bytes], at),
        (e) => getFault(e) !== undefined,
      );
  });

  it("with raw reasoning is shown as a summary, and sent back unchanged", () => {
    const [raw] = readRecordings(
      new URL("../../fixtures/recordings/responses-raw/", import.meta.url),
    );
    const events = decode(client, [raw!.body], of, raw!.headers);
    const { response: shown } = replay(encodeText(server, events, to()));
    expect(shown.output[0].summary).toEqual([{ type: "summary_text", text: "The user says hi." }]);
    const back = server.decodeRequest({ model: "m", input: shown.output }, "generate");
    expect(back.operation === "chat" && back.turns[0]!.blocks).toEqual([
      { type: "reasoning", text: "The user says hi." },
      { type: "text", text: "Hi." },
    ]);
  });
});

describe("passthrough mode", () => {
  it.each([
    ["before its data", (data: string) => `event: error\ndata: ${data}\n\n`],
    ["without a space", (data: string) => `event:error\ndata: ${data}\n\n`],
    ["behind its data", (data: string) => `data: ${data}\nevent: error\n\n`],
  ])(
    "treats an event with the name error and %s as an error, whatever it contains",
    (_where, named) => {
      for (const data of [JSON.stringify(delta), JSON.stringify(delta).replace("{", "{+")])
        for (const before of [[], [delta], [delta, delta]]) {
          const bytes = [
            sse(created, added, ...before),
            Buffer.from(named(data)),
            sse(done, completed()),
          ];
          assert.throws(
            () => runRelay(client, bytes, to()),
            (e) => getFault(e) !== undefined,
          );
        }
    },
  );

  it("replaces the model in every response, adds the end mark, and changes nothing else", () => {
    const tricky = {
      ...delta,
      delta: '"model":"gpt-6-2026","response":{"model":"x"}',
      model: "keep",
    };
    const out = runRelay(client, [sse(created, added, tricky, done, completed())], to());
    const expected = sse(created, added, tricky, done, completed())
      .toString()
      .replaceAll(
        '"object":"response","model":"gpt-6-2026"',
        '"object":"response","model":"openai/gpt-6"',
      );
    expect(out.bytes.toString()).toBe(`${expected}data: [DONE]\n\n`);
    expect(out).toMatchObject({ id: "resp_up", finish: "stop" });
  });

  it("forwards unknown events", () => {
    const odd = { type: "response.new_thing.added", x: 1 };
    const out = runRelay(client, [sse(created, ": note\n\n", odd, completed())], to());
    expect(out.bytes.toString()).toContain(": note\n\n");
    expect(out.bytes.toString()).toContain('"type":"response.new_thing.added","x":1');
  });

  it("commits at the first token, not before", () => {
    const before = sse(created, added).length + "openai/gpt-6".length - "gpt-6-2026".length;
    const out = runRelay(client, splitChunks([sse(...good)], "bytes"), to());
    expect(out.firstContentOffset).toBe(before);
  });

  it("ends a truncated stream with this protocol's error and the next sequence number", () => {
    const chunks: Buffer[] = [];
    const sink = {
      setContentType() {},
      write: (b: Buffer) => void chunks.push(Buffer.from(b)),
      reportContent() {},
      reportStart() {},
      reportUsage() {},
      reportFinish: () => undefined,
    };
    const text = sse(created, added, delta).toString();
    for (const said of [
      "",
      sse(created).toString(),
      text,
      `${text}: a note\n\n`,
      `${text}event: respo`,
    ]) {
      chunks.length = 0;
      const tap = client.createPassthrough!(sink, to(), {});
      if (said) tap.push(Buffer.from(said));
      expect(tap.isBetweenEvents).toBe(!said.endsWith("respo"));
      tap.writeFault({ kind: "upstream", message: "It broke." });
      tap.writeFault({ kind: "upstream", message: "Again." });
      const events = Buffer.concat(chunks)
        .toString()
        .split("\n\n")
        .flatMap((block) => /data: (\{.*)/.exec(block)?.[1] ?? [])
        .map((data) => JSON.parse(data));
      expect(events.map((e) => e.sequence_number)).toEqual(events.map((_, i) => i));
      expect(events.slice(-2).map((e) => e.type)).toEqual(["error", "response.failed"]);
      expect(events.at(-1).response).toMatchObject({
        status: "failed",
        model: "openai/gpt-6",
        error: { message: "It broke." },
      });
      if (said) expect(events.at(-1).response.id).toBe("resp_up");
      expect(Buffer.concat(chunks).toString().endsWith("data: [DONE]\n\n")).toBe(true);
      expect(events.some((e) => e.error?.message === "Again.")).toBe(false);
    }
  });

  it("keeps the usage of a failed response", () => {
    let seen: unknown;
    const sink = {
      setContentType() {},
      write() {},
      reportContent() {},
      reportStart() {},
      reportUsage: (u: unknown) => void (seen = u),
      reportFinish: () => undefined,
    };
    const failed = {
      type: "response.failed",
      response: response({
        status: "failed",
        error: { code: "server_error", message: "No." },
        usage: { input_tokens: 3, output_tokens: 1 },
      }),
    };
    const tap = client.createPassthrough!(sink, to(), {});
    expect(faultFrom(() => tap.push(sse(created, failed))).message).toBe("No.");
    expect(seen).toMatchObject({ usage: { input: 3, output: 1 } });
  });

  it("replaces the model of a non-streaming response, and forwards a body that is no response", () => {
    const pass = (body: JsonObject, asked: JsonObject = {}) =>
      runRelay(
        client,
        [Buffer.from(JSON.stringify(body, null, 1))],
        createResponseContext({ model: "openai/gpt-6", body: asked }),
      ).bytes.toString();
    const answer = response({ status: "completed", tools: [{ model: "gpt-6-2026" }] });
    expect(pass(answer)).toBe(JSON.stringify({ ...answer, model: "openai/gpt-6" }, null, 1));
    const deleted = { id: "resp_1", object: "response.deleted", deleted: true };
    expect(pass(deleted)).toBe(JSON.stringify(deleted, null, 1));
    // A response that failed long ago is decoded like any other.
    const failed = response({ status: "failed", error: { code: "x", message: "y" } });
    expect(() => pass(failed)).not.toThrow();
    expect(() => pass(failed, { input: "Hi" })).toThrow();
  });
});

describe("both modes", () => {
  it("give the client the same response", () => {
    const events = decode(client, [sse(...good)], of);
    const whole = judge(
      JSON.parse(
        JSON.stringify(server.encodeResponse(collectResponse(events), createResponseContext())),
      ),
    );
    expect(whole.output[0].content[0].text).toBe("Hi");
    expect(comparableContent(events)).toEqual(
      comparableContent(decodeWhole(client, Buffer.from(JSON.stringify(whole)), of)),
    );
  });
});
