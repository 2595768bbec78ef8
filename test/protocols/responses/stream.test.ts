// Our streams and non-streaming responses, replayed like a client does.
import assert from "node:assert/strict";
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { collectResponse, type Body, type ModelEvent, type OpenBlock } from "tollgate/plugin";
import { responses } from "tollgate/protocols/responses";
import { createResponseContext, encodeText } from "tollgate/testing";
import { judge, replay } from "./oracle.ts";
import { REQUIRED } from "./shapes.ts";
import { trialCount } from "../../kit/law-effort.ts";

const server = responses().server!;

/** A block in one event. */
const block = (index: number, open: OpenBlock, ...said: string[]): ModelEvent[] => [
  { type: "open", index, block: open },
  ...said.map((text): ModelEvent => ({ type: "delta", index, text })),
  { type: "close", index },
];
const usage: ModelEvent = {
  type: "usage",
  usage: {
    input: 100,
    cache_read: 900,
    cache_write_5m: 150,
    cache_write_1h: 50,
    output: 100,
    reasoning: 60,
  },
};
const answer = (
  reason: "stop" | "length" | "filtered" | "tool_calls" | "refusal",
  ...blocks: ModelEvent[][]
) => [
  { type: "start", id: "up_1", model: "m" } as const,
  ...blocks.flat(),
  usage,
  { type: "finish", reason } as const,
];
const text: OpenBlock = { type: "text" };
const reasoning: OpenBlock = { type: "reasoning" };
const call = (n: number, tool: "function" | "custom" = "function"): OpenBlock => ({
  type: "call",
  id: `call_${n}`,
  name: "get_weather",
  tool,
});
const signed = (index: number, ...said: string[]): ModelEvent[] =>
  block(index, reasoning, ...said).toSpliced(-1, 0, {
    type: "proof",
    index,
    proof: { origin: "messages", kind: "signature", data: "EqoB" },
  });

const scenarios: Record<string, ModelEvent[]> = {
  text: answer("stop", block(0, text, "Hel", "lo 🌍")),
  "nothing at all": answer("stop"),
  "text, then a tool": answer(
    "tool_calls",
    block(0, text, "Let me look."),
    block(1, call(1), '{"a"', ":1}"),
  ),
  "reasoning, then text": answer("stop", signed(0, "Think", "ing."), block(1, text, "Yes.")),
  "reasoning, then a tool": answer("tool_calls", signed(0, "Hm."), block(1, call(1), "{}")),
  "text, then reasoning": answer("stop", block(0, text, "First."), signed(1, "Then.")),
  "a tool only": answer("tool_calls", block(0, call(1))),
  "two reasoning blocks": answer(
    "stop",
    signed(0, "One."),
    signed(1, "Two."),
    block(2, text, "Done."),
  ),
  "reasoning without words": answer("stop", signed(0), block(1, text, "Done.")),
  "parallel tools": answer("tool_calls", [
    { type: "open", index: 0, block: call(1) },
    { type: "open", index: 1, block: call(2) },
    { type: "open", index: 2, block: call(3) },
    { type: "delta", index: 1, text: '{"b"' },
    { type: "delta", index: 0, text: '{"a":1}' },
    { type: "delta", index: 1, text: ":2}" },
    { type: "close", index: 1 },
    { type: "delta", index: 2, text: "{}" },
    { type: "close", index: 0 },
    { type: "close", index: 2 },
  ]),
  refusal: answer("refusal", block(0, { type: "refusal" }, "I ", "cannot.")),
  "text and a refusal": answer(
    "refusal",
    block(0, text, "Well."),
    block(1, { type: "refusal" }, "No."),
  ),
  "a custom tool": answer("tool_calls", block(0, call(1, "custom"), "*** Begin", " Patch\n")),
  "cut at the limit in a text": answer("length", block(0, text, "And so")),
  "cut at the limit in a call": answer("length", block(0, call(1), '{"city":"Os')),
  "cut at the limit after a call": answer("length", block(0, call(1), '{"city":"Oslo"}')),
  "cut at the limit in reasoning": answer("length", block(0, reasoning, "Hm")),
  filtered: answer("filtered", block(0, text, "Once")),
  citations: answer("stop", [
    { type: "open", index: 0, block: text },
    { type: "delta", index: 0, text: "It rains." },
    {
      type: "cite",
      index: 0,
      citation: {
        type: "url_citation",
        url: "https://a.example",
        title: "A",
        start_index: 0,
        end_index: 2,
      },
    },
    {
      type: "cite",
      index: 0,
      citation: {
        type: "web_search_result_location",
        url: "https://b.example",
        title: "B",
        cited_text: "x",
      },
    },
    { type: "close", index: 0 },
  ]),
  "an image": answer("stop", [
    { type: "open", index: 0, block: { type: "image" } },
    { type: "media", index: 0, media: { base64: "AAAA" }, partial: true },
    { type: "media", index: 0, media: { bytes: Buffer.from("png") } },
    { type: "close", index: 0 },
  ]),
  "a hosted tool of ours": answer(
    "stop",
    block(0, {
      type: "opaque",
      origin: "responses",
      raw: { type: "file_search_call", id: "fs_1", status: "completed", queries: [] },
    }),
    block(1, text, "Found."),
  ),
  "a search of another vendor": answer(
    "stop",
    block(0, {
      type: "opaque",
      origin: "messages",
      raw: {
        type: "server_tool_use",
        id: "srvtoolu_1",
        name: "web_search",
        input: { query: "rain" },
      },
    }),
    block(1, {
      type: "opaque",
      origin: "messages",
      raw: { type: "web_search_tool_result", content: [] },
    }),
    block(2, text, "Rain."),
  ),
};

const whole = (events: readonly ModelEvent[], body: Body = {}) =>
  judge(
    JSON.parse(
      JSON.stringify(
        server.encodeResponse(collectResponse(events), createResponseContext({ body })),
      ),
    ),
  );
const streamed = (events: readonly ModelEvent[], body: Body = {}) =>
  replay(encodeText(server, events, createResponseContext({ stream: true, body })));

describe.each(Object.entries(scenarios))("%s", (_name, events) => {
  it("follows the grammar from the first event to the last", () => void streamed(events));

  it("streams the content of the non-streaming response", () => {
    // Including IDs of items, because a client may read either.
    expect(streamed(events).response).toEqual(whole(events));
  });
});

describe("a response", () => {
  it("has the 31 required keys", () => {
    expect(REQUIRED).toHaveLength(31);
    const { response } = streamed(scenarios["text"]!);
    for (const key of REQUIRED) expect(response).toHaveProperty(key);
  });

  it("has the service's usage format", () =>
    expect(whole(scenarios["text"]!).usage).toMatchObject({
      input_tokens: 1200,
      input_tokens_details: { cached_tokens: 900, cache_write_tokens: 200 },
      output_tokens: 100,
      output_tokens_details: { reasoning_tokens: 60 },
      total_tokens: 1300,
    }));

  it("has null for unknown usage", () =>
    expect(whole(scenarios["text"]!.filter((e) => e.type !== "usage")).usage).toBeNull());

  it("names the limit that ended it", () => {
    expect(whole(scenarios["cut at the limit in a text"]!)).toMatchObject({
      status: "incomplete",
      incomplete_details: { reason: "max_output_tokens" },
      output: [{ status: "incomplete" }],
    });
    expect(whole(scenarios["filtered"]!).incomplete_details).toEqual({ reason: "content_filter" });
  });

  it("completes no call that may be truncated", () => {
    const { events } = streamed(scenarios["cut at the limit in a call"]!);
    expect(events.map((e) => e.type)).not.toContain("response.function_call_arguments.done");
    expect(whole(scenarios["cut at the limit after a call"]!).output[0].status).toBe("completed");
  });

  it("echoes the client's request", () => {
    const body: Body = {
      model: "openai/gpt-6",
      input: "Hi",
      instructions: "Be brief.",
      tools: [
        { type: "function", name: "f", parameters: { type: "object" } },
        { type: "mcp", server_label: "x", authorization: "secret", headers: { a: "secret" } },
      ],
      text: { format: { type: "json_schema", name: "n", schema: {} }, verbosity: "low" },
      temperature: 0.3,
      metadata: { a: "b" },
      truncation: "auto",
      reasoning: { effort: "low" },
      store: true,
    };
    const said = whole(scenarios["text"]!, body);
    expect(said).toMatchObject({
      instructions: "Be brief.",
      temperature: 0.3,
      metadata: { a: "b" },
      truncation: "auto",
      store: false,
      reasoning: { effort: "low", summary: null },
      tools: [{ name: "f", description: null, strict: null }, { type: "mcp" }],
    });
    expect(JSON.stringify(said)).not.toContain("secret");
  });

  it("calls tools by their declared names", () => {
    const tools = [
      { type: "custom", name: "apply_patch" },
      { type: "namespace", name: "crm", tools: [{ type: "function", name: "find" }] },
      { type: "function", name: "x".repeat(80) },
    ];
    const said = (name: string, args: string) =>
      streamed(
        answer("tool_calls", block(0, { type: "call", id: "c1", name, tool: "function" }, ...args)),
        { tools },
      ).response.output[0];
    // A function in place of a freeform tool returns its text, unescaped.
    expect(said("apply_patch", '{"input":"a\\n\\"b\\" é"}')).toMatchObject({
      type: "custom_tool_call",
      name: "apply_patch",
      input: 'a\n"b" é',
    });
    expect(said("crm__find", "{}")).toMatchObject({
      name: "find",
      namespace: "crm",
      arguments: "{}",
    });
  });

  it("carries another provider's proof to the client and back", () => {
    const proof = { origin: "messages", kind: "signature", data: "EqoB" };
    const onCall = { origin: "gemini", kind: "thoughtSignature", data: "sig" };
    const events = answer("tool_calls", signed(0, "Think."), block(1, text, "Hm."), [
      { type: "open", index: 2, block: call(1) },
      { type: "proof", index: 2, proof: onCall },
      { type: "close", index: 2 },
    ]);
    const { output } = streamed(events).response;
    const back = server.decodeRequest({ model: "m", input: output }, "generate");
    if (back.operation !== "chat") throw new Error("not chat");
    expect(back.turns).toEqual([
      {
        role: "assistant",
        blocks: [
          { type: "reasoning", text: "Think.", proof },
          { type: "text", text: "Hm." },
          {
            type: "call",
            id: "call_1",
            name: "get_weather",
            tool: "function",
            args: "{}",
            proof: onCall,
          },
        ],
      },
    ]);
  });

  it("never reports a failure as a success", () => {
    for (const [name, events] of Object.entries(scenarios))
      for (let n = 0; n < events.length; n++) {
        let out = "";
        const encoder = server.createEncoder(
          (t) => (out += t),
          createResponseContext({ stream: true }),
        );
        for (const e of events.slice(0, n)) encoder.writeEvent(e);
        encoder.writeFault({ kind: "upstream", message: "It broke.", code: "truncated" });
        // Nothing follows the end.
        encoder.writeFault({ kind: "internal", message: "Again." });
        const { response, events: told } = replay(out, "failed");
        assert.equal(response.error.message, "It broke.", name);
        assert.equal(told.at(-2).type, "error", name);
        // A call that was not closed is never completed, because a client would run it.
        const open = new Set<number>();
        for (const e of events.slice(0, n)) {
          if (e.type === "open" && e.block.type === "call") open.add(e.index);
          if (e.type === "close") open.delete(e.index);
        }
        const calls = response.output.filter(
          (item: any) => item.type.endsWith("call") && item.call_id,
        );
        const closed = events
          .slice(0, n)
          .filter((e) => e.type === "open" && e.block.type === "call").length;
        assert.ok(calls.length <= closed - open.size, name);
      }
  });

  it("states whether the client may retry, in the form that clients read", () => {
    const code = (kind: any, own?: string) => {
      let out = "";
      server
        .createEncoder((t) => (out += t), createResponseContext({ stream: true }))
        .writeFault({ kind, message: "No.", code: own });
      return replay(out, "failed").response.error;
    };
    expect(code("rate_limited").code).toBe("rate_limit_exceeded");
    expect(code("quota").code).toBe("insufficient_quota");
    expect(code("context_length").code).toBe("context_length_exceeded");
    expect(code("overloaded").code).toBe("server_is_overloaded");
    expect(code("upstream", "truncated").code).toBe("server_error");
    expect(code("internal").message).not.toContain("No.");
  });

  it("has raw reasoning under the newer name if configured", () => {
    const out = encodeText(
      responses({ reasoning: "text" }).server!,
      scenarios["reasoning, then text"]!,
      createResponseContext({ stream: true }),
    );
    const { response } = replay(out);
    expect(response.output[0]).toMatchObject({
      summary: [],
      content: [{ type: "reasoning_text", text: "Thinking." }],
    });
  });
});

describe("events in any order", () => {
  const blocks = fc.array(
    fc.record({
      open: fc.constantFrom<OpenBlock>(
        text,
        { type: "refusal" },
        reasoning,
        { type: "reasoning", summary: true },
        { type: "call", id: "", name: "f", tool: "function" },
        { type: "call", id: "", name: "g", tool: "custom" },
        { type: "image" },
        { type: "audio" },
        { type: "opaque", origin: "responses", raw: { type: "new_thing" } },
        { type: "opaque", origin: "gemini", raw: { x: 1 } },
      ),
      said: fc.array(fc.string({ unit: "grapheme", maxLength: 6 }), { maxLength: 4 }),
      proof: fc.option(fc.constantFrom("messages", "responses", "gemini")),
    }),
    { maxLength: 6 },
  );
  /** Blocks that are open together, with shuffled events. */
  const interleaved = fc
    .tuple(blocks, fc.array(fc.nat({ max: 99 }), { minLength: 200, maxLength: 200 }))
    .map(([list, chance]) => {
      const queues = list.map(({ open, said, proof }, index): ModelEvent[] => {
        const made: OpenBlock = open.type === "call" ? { ...open, id: `call_${index}` } : open;
        return [
          { type: "open", index, block: made },
          ...(open.type === "image" || open.type === "audio"
            ? [{ type: "media", index, media: { base64: "AAAA" } } as const]
            : open.type === "opaque"
              ? []
              : said.map((t): ModelEvent => ({ type: "delta", index, text: t }))),
          ...(proof && open.type !== "opaque"
            ? [{ type: "proof", index, proof: { origin: proof, kind: "k", data: "d" } } as const]
            : []),
          { type: "close", index },
        ];
      });
      const events: ModelEvent[] = [];
      let n = 0;
      while (queues.some((q) => q.length > 0)) {
        const left = queues.filter((q) => q.length > 0);
        events.push(left[chance[n++ % chance.length]! % left.length]!.shift()!);
      }
      return events;
    });
  const reasons = fc.constantFrom(
    "stop",
    "length",
    "tool_calls",
    "filtered",
    "refusal",
    "pause",
    "other",
    "context",
    "stop_sequence",
  );

  it("give a stream that follows the grammar and equals the non-streaming response", () =>
    fc.assert(
      fc.property(interleaved, reasons, (inner, reason) => {
        const events = [
          { type: "start" } as const,
          ...inner,
          usage,
          { type: "finish", reason: reason as "stop" } as const,
        ];
        const got = streamed(events).response;
        const expected = whole(events);
        // The non-streaming response has blocks in the order in which they were opened, and so has
        // the stream.
        expect(got).toEqual(expected);
      }),
      { numRuns: trialCount(300) },
    ));
});
