// A client's request is kept completely.
import { Ajv } from "ajv";
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { withoutUndefined } from "../../../src/testing/codec.ts";
import schema from "../../../schemas/messages.request.json" with { type: "json" };
import { decode, encode } from "./asked.ts";
import { bodies } from "./bodies.ts";
import { server } from "./recorded.ts";
import { trialCount } from "../../kit/law-effort.ts";

test("a request is unchanged after decoding and encoding", () => {
  fc.assert(
    fc.property(bodies, (body) => {
      const request = decode(body);
      const { body: wire, losses } = encode(request, { systemMessages: true });
      expect(losses).toEqual([]);
      expect(withoutUndefined(decode(wire))).toEqual(withoutUndefined(request));
    }),
    { numRuns: trialCount(300) },
  );
});

test("every top-level field is decoded", () => {
  fc.assert(
    fc.property(bodies, (body) => {
      const { body: wire } = encode(decode(body), { systemMessages: true });
      const { messages: _messages, system: _system, ...fields } = body;
      for (const [field, value] of Object.entries(fields))
        if (Object.keys(value as object).length > 0 || typeof value !== "object")
          expect(wire[field], field).toEqual(value);
    }),
  );
});

/**
 * The same in the longer form: a text as a list of blocks, and without a caller that is the client
 * itself.
 */
const spelled = (content: any): any =>
  typeof content === "string"
    ? [{ type: "text", text: content }]
    : content?.map((block: any) => {
        if (block.type === "tool_use" && block.caller?.type === "direct") {
          const { caller: _direct, ...call } = block;
          return call;
        }
        return block.type === "tool_result" && block.content !== undefined
          ? { ...block, content: spelled(block.content) }
          : block;
      });
const told = (message: any) => ({ ...message, content: spelled(message.content) });

test("every block of every message is decoded", () => {
  fc.assert(
    fc.property(bodies, (body) => {
      const { body: wire } = encode(decode(body), { systemMessages: true });
      expect(withoutUndefined(wire["messages"].map(told))).toEqual(
        withoutUndefined(body["messages"].map(told)),
      );
      expect(withoutUndefined(spelled(wire["system"]))).toEqual(
        withoutUndefined(spelled(body["system"])),
      );
    }),
    { numRuns: trialCount(300) },
  );
});

test("unknown fields are left to the host", () => {
  const request = decode({ model: "m", max_tokens: 1, messages: [], brand_new: { a: 1 } });
  expect(request.rest).toEqual({ brand_new: { a: 1 } });
});

test("thinking with a budget is unchanged if the limit allows it", () => {
  const body = {
    model: "m",
    max_tokens: 4000,
    thinking: { type: "enabled", budget_tokens: 3999, display: "omitted" },
    messages: [{ role: "user", content: [{ type: "text", text: "x" }] }],
  };
  expect(encode(decode(body))).toEqual({ body, losses: [] });
});

test("an effort without thinking stays an effort", () => {
  const body = {
    model: "m",
    max_tokens: 10,
    output_config: { effort: "low" },
    messages: [{ role: "user", content: "x" }],
  };
  expect(encode(decode(body)).body).not.toHaveProperty("thinking");
});

test("consecutive messages of one role are one turn, results first", () => {
  const { body } = encode(
    decode({
      model: "m",
      max_tokens: 1,
      messages: [
        { role: "assistant", content: [{ type: "tool_use", id: "t", name: "f", input: {} }] },
        { role: "user", content: "and now?" },
        { role: "user", content: [{ type: "tool_result", tool_use_id: "t", content: "42" }] },
      ],
    }),
  );
  expect(body["messages"]).toHaveLength(2);
  expect(body["messages"][1].content.map((b: any) => b.type)).toEqual(["tool_result", "text"]);
});

test("a message of a newer type is neither split nor merged", () => {
  const newer = { role: "user", content: "a", newer_than_us: 1 };
  const plainly = { role: "user", content: [{ type: "text", text: "b" }] };
  for (const messages of [
    [newer, plainly],
    [plainly, newer, newer, plainly],
  ])
    expect(encode(decode({ model: "m", max_tokens: 1, messages })).body["messages"]).toEqual(
      messages,
    );
});

test("a token count has only the counted fields", () => {
  const { body, losses } = encode(
    decode({
      model: "m",
      messages: [{ role: "user", content: "x" }],
      temperature: 1,
      metadata: { user_id: "u" },
      tools: [{ name: "a", input_schema: { type: "object" } }],
    }),
    {},
    { op: "count" },
  );
  expect(Object.keys(body).toSorted()).toEqual(["messages", "model", "tools"]);
  expect(losses).toEqual([]);
});

describe("the schema", () => {
  const validate = new Ajv({ strict: false }).compile(schema);
  const good = { model: "p/m", max_tokens: 1, messages: [{ role: "user", content: "x" }] };

  test("accepts everything in the API", () => {
    fc.assert(
      fc.property(bodies, (body) => {
        expect(validate(body), JSON.stringify(validate.errors)).toBe(true);
      }),
    );
  });

  test.each([
    ["/", { ...good, model: undefined }],
    ["/", { ...good, max_tokens: undefined }],
    ["/", { ...good, messages: undefined }],
    ["/model", { ...good, model: 3 }],
    ["/max_tokens", { ...good, max_tokens: 1.5 }],
    ["/max_tokens", { ...good, max_tokens: -1 }],
    ["/messages", { ...good, messages: [] }],
    ["/messages", { ...good, messages: "x" }],
    ["/messages/0/role", { ...good, messages: [{ role: "tool", content: "x" }] }],
    ["/messages/0", { ...good, messages: [{ role: "user" }] }],
    ["/messages/0/content", { ...good, messages: [{ role: "user", content: 3 }] }],
    ["/messages/0/content/0", { ...good, messages: [{ role: "user", content: [{}] }] }],
    ["/system", { ...good, system: { text: "x" } }],
    ["/system/0/type", { ...good, system: [{ type: "image", text: "x" }] }],
    ["/stream", { ...good, stream: "true" }],
    ["/temperature", { ...good, temperature: "1" }],
    ["/thinking/type", { ...good, thinking: { type: "sometimes" } }],
    ["/thinking", { ...good, thinking: { type: "enabled" } }],
    ["/thinking/budget_tokens", { ...good, thinking: { type: "enabled", budget_tokens: 9 } }],
    ["/tools", { ...good, tools: {} }],
    ["/tool_choice", { ...good, tool_choice: { type: "tool" } }],
    ["/stop_sequences/0", { ...good, stop_sequences: [1] }],
  ])("rejects at %s", (pointer, body) => {
    expect(validate(JSON.parse(JSON.stringify(body)))).toBe(false);
    expect(validate.errors![0]!.instancePath || "/").toBe(pointer);
  });

  test.each(["enabled", "disabled", "adaptive", "between_tools"])("accepts thinking %s", (type) => {
    const thinking = { type, ...(type === "enabled" && { budget_tokens: 1024 }) };
    expect(validate({ ...good, thinking })).toBe(true);
  });
});

test("an upload is a file", () => {
  const content = [{ type: "container_upload", file_id: "f" }];
  const { features } = server.analyze({ messages: [{ role: "user", content }] } as never);
  expect(features).toEqual(["state.file"]);
});

test("request analysis finds what the pipeline needs", () => {
  const { features, maxOutput } = server.analyze({
    model: "m",
    max_tokens: 77,
    stream: true,
    system: [{ type: "text", text: "x", cache_control: { type: "ephemeral", ttl: "1h" } }],
    tools: [
      { name: "f" },
      { type: "web_search_20260318", name: "web_search" },
      { type: "bash_20250124", name: "bash" },
    ],
    thinking: { type: "adaptive" },
    output_config: { format: { type: "json_schema", schema: {} } },
    container: "c",
    thread: { type: "create" },
    mcp_servers: [{}],
    messages: [
      {
        role: "user",
        content: [
          {
            type: "tool_result",
            tool_use_id: "t",
            content: [{ type: "image", source: { type: "file", file_id: "f" } }],
          },
          { type: "document", source: { type: "url", url: "https://e" } },
        ],
      },
    ],
  } as never);
  expect(maxOutput).toBe(77);
  expect([...features].toSorted()).toEqual([
    "cache.1h",
    "documents",
    "hosted.mcp",
    "hosted.web_search",
    "hosted.web_search_dynamic",
    "json_schema",
    "reasoning",
    "state.container",
    "state.file",
    "state.thread",
    "stream",
    "system",
    "tools",
    "vision",
  ]);
});
