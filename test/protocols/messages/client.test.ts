// This protocol's clients: the grammar of their stream, the non-streaming response, and the content
// that they can send back.
import Anthropic from "@anthropic-ai/sdk";
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { fail, getFault } from "../../../src/model/error.ts";
import type { ModelEvent } from "../../../src/model/event.ts";
import { collectResponse } from "../../../src/model/response-collector.ts";
import type { Block, ChatRequest } from "../../../src/model/request.ts";
import { createNameRestorer } from "../../../src/protocols/tool-calls.ts";
import { createResponseContext, createCallContext } from "../../../src/testing/codec-contexts.ts";
import { decode, decodeWhole, encodeText, comparableContent } from "../../../src/testing/codec.ts";
import { checkStream, checkWhole } from "../wire/messages.ts";
import { answers } from "./answers.ts";
import { client, server } from "./recorded.ts";
import { trialCount } from "../../kit/law-effort.ts";

const streamed = (events: readonly ModelEvent[], body = {}) =>
  encodeText(server, events, createResponseContext({ stream: true, body }));

const wholly = (events: readonly ModelEvent[], body = {}) =>
  JSON.parse(
    JSON.stringify(server.encodeResponse(collectResponse(events), createResponseContext({ body }))),
  );

test("every stream follows the grammar, with any content in any order", () => {
  fc.assert(fc.property(answers, (events) => checkStream(streamed(events), "complete")));
});

test("every non-streaming response has the documented form", () => {
  fc.assert(fc.property(answers, (events) => checkWhole(wholly(events))));
});

test("stream and non-streaming response have the same content", () => {
  fc.assert(
    fc.property(answers, (events) => {
      const stream = decode(
        client,
        [Buffer.from(streamed(events))],
        createCallContext({ stream: true }),
      );
      const whole = decodeWhole(
        client,
        Buffer.from(JSON.stringify(wholly(events))),
        createCallContext(),
      );
      expect(comparableContent(stream)).toEqual(comparableContent(whole));
    }),
  );
});

test("the official SDK collects the stream into the non-streaming response", async () => {
  await fc.assert(
    fc.asyncProperty(answers, async (events) => {
      const sdk = new Anthropic({
        apiKey: "k",
        maxRetries: 0,
        fetch: async () =>
          new Response(streamed(events), { headers: { "content-type": "text/event-stream" } }),
      });
      const stream = sdk.messages.stream({
        model: "m",
        max_tokens: 1,
        messages: [{ role: "user", content: "x" }],
      });
      const message = JSON.parse(JSON.stringify(await stream.finalMessage()));
      const { usage, ...whole } = wholly(events);
      expect(message).toMatchObject(whole);
      expect(message.usage.output_tokens).toBe(usage.output_tokens);
      expect(message.usage.input_tokens).toBe(usage.input_tokens);
      expect(message.usage.cache_read_input_tokens).toBe(usage.cache_read_input_tokens);
    }),
    { numRuns: trialCount(40) },
  );
});

/** Content that a client returns if it echoes the response exactly. */
const echoed = (content: unknown): readonly Block[] =>
  (
    server.decodeRequest(
      {
        model: "m",
        max_tokens: 1,
        messages: [
          { role: "user", content: "x" },
          { role: "assistant", content: content as never },
        ],
      },
      "generate",
    ) as ChatRequest
  ).turns.at(-1)!.blocks;

/** Only a proof follows the last text: it is omitted, so that clients find text at the end. */
function spokenLast(blocks: readonly Block[]): readonly Block[] {
  const end = blocks.findLastIndex(
    (b) =>
      b.type !== "reasoning" || "text" in b || "summary" in b || b.proof?.origin === "messages",
  );
  const last = blocks[end];
  if (last?.type !== "text") return blocks;
  const { proof: _, ...words } = last;
  return [...blocks.slice(0, end), words];
}

test("a response is sent back unchanged, including proofs of other providers", () => {
  fc.assert(
    fc.property(answers, (events) => {
      const { blocks, finish } = collectResponse(events);
      const expected = blocks.flatMap((block): Block[] => {
        if ((block.type === "text" || block.type === "refusal") && block.text === "") return [];
        if (block.type === "reasoning") {
          const said = block.text ?? block.summary?.[0] ?? "";
          if (said === "" && !block.proof) return [];
          // A summary without text only keeps the proof, and the own upstream's has none.
          const native = block.proof?.origin === "messages";
          if (block.summary && native && block.proof!.kind === "signature")
            return [{ type: "reasoning", text: said, proof: block.proof! }];
          if (said === "") return [{ type: "reasoning", ...own(block) }];
          return [block];
        }
        if (block.type === "refusal") return [{ ...block, type: "text" }];
        if (block.type === "text") return [textOf(block)];
        return [block];
      });
      const { content } = wholly(events);
      if (content.length === 0) return;
      const got = echoed(content);
      const names = blocks.flatMap((b) => (b.type === "call" ? [b.name] : []));
      const back = got.map((b) =>
        b.type === "call" ? { ...b, name: createNameRestorer(() => names)(b.name) } : b,
      );
      expect(finish).toBeDefined();
      expect(back.map(comparable)).toEqual(spokenLast(expected).map(comparable));
    }),
  );
});

/** A signature without text stays a thinking block with an empty text. */
const own = (block: Extract<Block, { type: "reasoning" }>) =>
  block.proof?.origin === "messages" && block.proof.kind === "signature"
    ? { text: "", proof: block.proof }
    : { proof: block.proof! };

const textOf = (block: Extract<Block, { type: "text" }>): Block => {
  const { citations, ...text } = block;
  const kept = citations?.filter((c) => (c as { type: string }).type !== "url_citation") ?? [];
  return kept.length > 0 ? { ...text, citations: kept } : text;
};

const comparable = (block: Block): unknown => {
  // A proof of our own on text, or a redaction next to text, cannot occur: no upstream of this
  // protocol sends it.
  if (block.type === "reasoning" && block.proof?.origin === "messages")
    return { type: "reasoning", data: block.proof.data };
  return JSON.parse(JSON.stringify(block));
};

describe("names and IDs", () => {
  const tools = [{ name: "files.read", input_schema: {} }];
  const call: ModelEvent[] = [
    { type: "start" },
    {
      type: "open",
      index: 0,
      block: { type: "call", id: "call|1:é", name: "files_read_5d8f0ac3", tool: "function" },
    },
    { type: "close", index: 0 },
    { type: "finish", reason: "stop" },
  ];

  test("an ID that is invalid in this protocol is changed deterministically", () => {
    const [block] = wholly(call).content;
    expect(block.id).toMatch(/^[a-zA-Z0-9_-]{1,64}$/);
    expect(wholly(call).content[0].id).toBe(block.id);
  });

  test("a name that was changed for another protocol is restored for the client", () => {
    const request = server.decodeRequest(
      { model: "m", max_tokens: 1, messages: [{ role: "user", content: "x" }], tools },
      "generate",
    ) as ChatRequest;
    const sent = client.encodeRequest(request, createCallContext()) as {
      tools: { name: string }[];
    };
    const [open, ...rest] = call.slice(1);
    const events = [
      call[0]!,
      { ...open!, block: { ...(open as any).block, name: sent.tools[0]!.name } } as ModelEvent,
      ...rest,
    ];
    expect(sent.tools[0]!.name).toMatch(/^[a-zA-Z0-9_-]+$/);
    expect(wholly(events, { tools }).content[0].name).toBe("files.read");
    expect(streamed(events, { tools })).toContain('"name":"files.read"');
  });
});

describe("arguments of calls", () => {
  const called = (args: string, reason: "stop" | "length" = "stop"): ModelEvent[] => [
    { type: "start" },
    { type: "open", index: 0, block: { type: "call", id: "a", name: "f", tool: "function" } },
    { type: "delta", index: 0, text: args },
    { type: "close", index: 0 },
    { type: "finish", reason },
  ];

  test.each([
    ["", {}],
    ["  ", {}],
    ['{"a":1}', { a: 1 }],
    ['"{\\"a\\":1}"', { a: 1 }],
  ])("%j becomes an object", (args, input) => {
    expect(wholly(called(args)).content[0].input).toEqual(input);
  });

  test("a large number keeps its digits", () => {
    const args = '{"channel":1234567890123456789}';
    const text = JSON.stringify(
      server.encodeResponse(collectResponse(called(args)), createResponseContext()),
    );
    expect(text).toContain('"input":{"channel":1234567890123456789}');
  });

  test("arguments that are no object are an error, never an empty object", () => {
    for (const args of ["{'a':1}", "[1]", '{"a":1} and more', "null"])
      try {
        server.encodeResponse(collectResponse(called(args)), createResponseContext());
        expect.unreachable(args);
      } catch (error) {
        expect(getFault(error)).toMatchObject({ kind: "upstream", code: "invalid_tool_arguments" });
      }
  });

  test("an input that the limit truncated is omitted, and the stop reason says so", () => {
    const whole = wholly(called('{"a":', "length"));
    expect(whole).toMatchObject({ content: [], stop_reason: "max_tokens" });
  });

  test("a pending call is tool_use, whatever the upstream's finish reason is", () => {
    expect(wholly(called("{}")).stop_reason).toBe("tool_use");
    expect(streamed(called("{}"))).toContain('"stop_reason":"tool_use"');
  });

  test("a refusal in text ends as one, whatever the upstream's finish reason is", () => {
    const events: ModelEvent[] = [
      { type: "start" },
      { type: "open", index: 0, block: { type: "refusal" } },
      { type: "delta", index: 0, text: "No." },
      { type: "close", index: 0 },
      { type: "finish", reason: "stop" },
    ];
    const end = { stop_reason: "refusal", stop_details: { type: "refusal" } };
    expect(wholly(events)).toMatchObject({ content: [{ type: "text", text: "No." }], ...end });
    expect(streamed(events)).toContain('"stop_reason":"refusal"');
  });

  test("free text is in the single member of its wrapper", () => {
    const events = called('a "quoted"\n\ud83d').map((e) =>
      e.type === "open" ? { ...e, block: { ...(e.block as any), tool: "custom" } } : e,
    ) as ModelEvent[];
    const more: ModelEvent = { type: "delta", index: 0, text: "\ude00 end" };
    events.splice(3, 0, more);
    const input = { input: 'a "quoted"\n😀 end' };
    expect(wholly(events).content[0].input).toEqual(input);
    const decoded = collectResponse(
      decode(client, [Buffer.from(streamed(events))], createCallContext()),
    );
    expect(JSON.parse((decoded.blocks[0] as { args: string }).args)).toEqual(input);
  });
});

describe("a failed stream", () => {
  const cut: ModelEvent[] = [
    { type: "start" },
    { type: "open", index: 0, block: { type: "text" } },
    { type: "delta", index: 0, text: "Hel" },
  ];

  const broken = () => {
    let text = "";
    const encoder = server.createEncoder(
      (more) => (text += more),
      createResponseContext({ stream: true }),
    );
    for (const e of cut) encoder.writeEvent(e);
    try {
      fail("overloaded", "Too busy.", { code: "busy" });
    } catch (error) {
      encoder.writeFault(getFault(error)!);
    }
    return text;
  };

  test("ends with the protocol's own error, and not like a normal end", () => {
    checkStream(broken(), "failed");
    expect(broken()).toContain('"type":"overloaded_error","message":"Too busy."');
    expect(broken()).not.toContain("message_stop");
  });

  test("raises in the official SDK", async () => {
    const sdk = new Anthropic({
      apiKey: "k",
      maxRetries: 0,
      fetch: async () =>
        new Response(broken(), { headers: { "content-type": "text/event-stream" } }),
    });
    const stream = sdk.messages.stream({ model: "m", max_tokens: 1, messages: [] });
    await expect(stream.finalMessage()).rejects.toThrow(/Too busy/);
  });
});

test("counts known at the start are in the first event", () => {
  const events: ModelEvent[] = [
    { type: "start" },
    { type: "usage", usage: { input: 7, cache_read: 3 } },
    { type: "open", index: 0, block: { type: "text" } },
    { type: "delta", index: 0, text: "x" },
    { type: "close", index: 0 },
    { type: "usage", usage: { output: 2 } },
    { type: "finish", reason: "stop" },
  ];
  let text = "";
  const encoder = server.createEncoder(
    (more) => (text += more),
    createResponseContext({ stream: true }),
  );
  for (const e of events) encoder.writeEvent(e);
  expect(text.slice(0, text.indexOf("\n\n"))).toContain('"input_tokens":7');
  expect(text).toMatch(/message_delta.*"input_tokens":7.*"output_tokens":2/);
});
