// Our own streams and responses: their grammar for strict clients, and the same content in both
// forms.
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { chatCompletions } from "../../../src/protocols/chat-completions/index.ts";
import {
  collectResponse,
  type Block,
  type ModelEvent,
  type OpenBlock,
} from "../../../src/plugin/index.ts";
import {
  createResponseContext,
  createCallContext,
  decode,
  decodeWhole,
  encodeText,
  comparableContent,
  createEventGrammar,
} from "../../../src/testing/index.ts";
import { checkError, checkStream, checkWhole } from "../wire/chat-completions.ts";

const { client, server } = chatCompletions();

const said = fc.string({ unit: "grapheme", maxLength: 12 });
const pieces = fc.array(
  said.filter((s) => s !== ""),
  { minLength: 1, maxLength: 4 },
);
const id = fc.stringMatching(/^[a-z]{1,8}$/);
const proof = fc.record({
  origin: fc.constantFrom("messages", "responses", "gemini", "chat-completions"),
  kind: fc.constantFrom("signature", "encrypted"),
  data: fc.base64String(),
});

interface Made {
  block: OpenBlock;
  pieces: string[];
  proof: { origin: string; kind: string; data: string } | undefined;
}
const made: fc.Arbitrary<Made> = fc.oneof(
  fc.record({
    block: fc.constantFrom<OpenBlock>({ type: "text" }, { type: "refusal" }),
    pieces,
    proof: fc.constant(undefined),
  }),
  fc.record({
    block: fc.constantFrom<OpenBlock>({ type: "reasoning" }, { type: "reasoning", summary: true }),
    pieces,
    proof: fc.option(proof, { nil: undefined }),
  }),
  fc.record({
    block: fc.record({
      type: fc.constant("call" as const),
      id,
      name: id,
      tool: fc.constantFrom("function" as const, "custom" as const),
    }),
    pieces: fc.array(said, { maxLength: 3 }),
    proof: fc.option(proof, { nil: undefined }),
  }),
);

/** Blocks that open and emit in any order that the grammar allows. */
const speech: fc.Arbitrary<ModelEvent[]> = fc
  .tuple(fc.array(made, { maxLength: 5 }), fc.array(fc.nat(), { maxLength: 40 }), fc.boolean())
  .map(([blocks, picks, together]) => {
    // A call is signed where it starts, before anything else. Reasoning is signed where it ends.
    const queues = blocks.map(({ block, pieces, proof }, index): ModelEvent[][] => {
      const call = block.type === "call";
      const open: ModelEvent = {
        type: "open",
        index,
        block: call ? { ...block, id: `${block.id}${index}` } : block,
      };
      const sign: ModelEvent[] = proof ? [{ type: "proof", index, proof }] : [];
      return [
        call ? [open, ...sign] : [open],
        ...pieces.map((text): ModelEvent[] => [{ type: "delta", index, text }]),
        ...(call ? [] : [sign]),
        [{ type: "close", index }],
      ];
    });
    const events: ModelEvent[] = [{ type: "start", id: "up", model: "m" }];
    let turn = 0;
    // Blocks open in the order of their indexes, so that collecting keeps it.
    let opened = 0;
    while (queues.some((q) => q.length > 0)) {
      const ready = queues
        .map((q, i) => ({ q, i }))
        .filter(
          ({ q, i }) =>
            q.length > 0 &&
            i <= opened &&
            (together || i === queues.findIndex((x) => x.length > 0)),
        );
      const { q, i } = ready[(picks[turn++ % (picks.length || 1)] ?? 0) % ready.length]!;
      if (q[0]![0]?.type === "open") opened = Math.max(opened, i + 1);
      events.push(...q.shift()!);
    }
    events.push({ type: "usage", usage: { input: 7, cache_read: 3, output: 11, reasoning: 2 } });
    const calls = blocks.some((b) => b.block.type === "call");
    events.push({ type: "finish", reason: calls ? "tool_calls" : "stop" });
    return events;
  });

/** Boundaries that this protocol can express: texts are joined, and so is reasoning. */
const heard = (blocks: readonly Block[]) => ({
  text: blocks.map((b) => (b.type === "text" ? b.text : "")).join(""),
  refusal: blocks.map((b) => (b.type === "refusal" ? b.text : "")).join(""),
  reasoning: blocks
    .map((b) => (b.type === "reasoning" ? (b.text ?? b.summary?.join("") ?? "") : ""))
    .join(""),
  calls: blocks
    .filter((b) => b.type === "call")
    .map(({ id, name, args, tool }) => ({ id, name, args, tool })),
});

describe("any response", () => {
  test("streams in the form that strict clients read, with or without usage", () => {
    fc.assert(
      fc.property(speech, fc.boolean(), (events, asked) => {
        const judge = createEventGrammar();
        for (const e of events) judge.event(e);
        const body = asked ? { stream_options: { include_usage: true } } : {};
        checkStream(
          encodeText(server!, events, createResponseContext({ stream: true, body })),
          "complete",
          asked,
        );
      }),
    );
  });

  test("has the same content as a stream, as one body, and in the original", () => {
    fc.assert(
      fc.property(speech, (events) => {
        const answer = collectResponse(events);
        const body = { stream_options: { include_usage: true } };
        const stream = encodeText(server!, events, createResponseContext({ stream: true, body }));
        const whole = server!.encodeResponse(answer, createResponseContext());
        checkWhole(whole);
        const inStream = decode(
          client!,
          [Buffer.from(stream)],
          createCallContext({ stream: true }),
        );
        const inOne = decodeWhole(client!, Buffer.from(JSON.stringify(whole)), createCallContext());
        expect(heard(collectResponse(inStream).blocks)).toEqual(heard(answer.blocks));
        expect(heard(collectResponse(inOne).blocks)).toEqual(heard(answer.blocks));
        expect((comparableContent(inStream) as { usage: unknown }).usage).toEqual(
          (comparableContent(events) as { usage: unknown }).usage,
        );
        expect(collectResponse(inStream).finish).toEqual(answer.finish);
        expect(collectResponse(inOne).finish).toEqual(answer.finish);
      }),
    );
  });

  test("that is truncated ends with an error, never with [DONE]", () => {
    fc.assert(
      fc.property(speech, fc.nat(), (events, at) => {
        let text = "";
        const encoder = server!.createEncoder(
          (more) => (text += more),
          createResponseContext({ stream: true }),
        );
        const cut = at % (events.length - 1);
        for (const e of events.slice(0, cut)) encoder.writeEvent(e);
        encoder.writeFault({ kind: "upstream", message: "gone", code: "upstream_disconnected" });
        checkStream(text, "failed", false);
        expect(text).not.toContain("[DONE]");
      }),
    );
  });

  test("returns its proofs when the client sends the message back", () => {
    fc.assert(
      fc.property(speech, (events) => {
        const answer = collectResponse(events);
        const whole = server!.encodeResponse(answer, createResponseContext()) as {
          choices: { message: object }[];
        };
        const messages = [
          { role: "user", content: "Q" },
          whole.choices[0]!.message,
          { role: "user", content: "R" },
        ];
        const request = server!.decodeRequest({ model: "m", messages } as never, "generate");
        if (request.operation !== "chat") throw new Error("chat");
        const proofs = (blocks: readonly Block[], type: Block["type"]) =>
          blocks.flatMap((b) => (b.type === type && b.proof ? [b.proof] : []));
        // Native details are one list, whichever block they belong to.
        const foreign = (all: object[]) =>
          all.filter((p) => (p as { origin: string }).origin !== "chat-completions");
        for (const type of ["reasoning", "call"] as const)
          expect(foreign(proofs(request.turns[1]!.blocks, type))).toEqual(
            foreign(proofs(answer.blocks, type)),
          );
      }),
    );
  });
});

describe("special responses", () => {
  const events = (block: OpenBlock, args: string, finish = "tool_calls"): ModelEvent[] => [
    { type: "start" },
    { type: "open", index: 0, block },
    { type: "delta", index: 0, text: args },
    { type: "close", index: 0 },
    { type: "finish", reason: finish as "stop" },
  ];
  const call = (name: string): OpenBlock => ({
    type: "call",
    id: "c1",
    name,
    tool: "function",
  });
  const streamed = (all: ModelEvent[], body: object): any[] =>
    encodeText(server!, all, createResponseContext({ stream: true, body: body as never }))
      .split("\n\n")
      .filter((e) => e.startsWith("data: {"))
      .map((e) => JSON.parse(e.slice(6)));

  test("a freeform tool that the upstream received as a function gets its input back", () => {
    const body = { tools: [{ type: "custom", custom: { name: "sql" } }] };
    const all = events(call("sql"), '{"input":"select \\"a\\""}');
    const deltas = streamed(all, body).flatMap((c) => c.choices[0].delta.tool_calls ?? []);
    expect(deltas[0]).toMatchObject({
      id: "c1",
      type: "custom",
      custom: { name: "sql", input: "" },
    });
    expect(deltas[1]).toEqual({ index: 0, custom: { input: 'select "a"' } });
    const whole = server!.encodeResponse(
      collectResponse(all),
      createResponseContext({ body: body as never }),
    ) as any;
    expect(whole.choices[0].message.tool_calls).toEqual([
      { id: "c1", type: "custom", custom: { name: "sql", input: 'select "a"' } },
    ]);
  });

  test("the oldest form of request gets the oldest form of response", () => {
    const body = { functions: [{ name: "add" }] };
    const all = events(call("add"), '{"a":1}');
    const chunks = streamed(all, body);
    expect(chunks.map((c) => c.choices[0].delta.function_call).filter(Boolean)).toEqual([
      { name: "add", arguments: "" },
      { arguments: '{"a":1}' },
    ]);
    expect(chunks.at(-1).choices[0].finish_reason).toBe("function_call");
    const { message, finish_reason } = (
      server!.encodeResponse(
        collectResponse(all),
        createResponseContext({ body: body as never }),
      ) as any
    ).choices[0];
    expect(message.function_call).toEqual({ name: "add", arguments: '{"a":1}' });
    expect(message.tool_calls).toBeUndefined();
    expect(finish_reason).toBe("function_call");
  });

  test("a late signature is sent nevertheless", () => {
    const all = events(call("f"), "{}");
    const proof = { origin: "gemini", kind: "thoughtSignature", data: "c2ln" };
    all.splice(3, 0, { type: "proof", index: 0, proof });
    const text = encodeText(server!, all, createResponseContext({ stream: true }));
    const [block] = collectResponse(
      decode(client!, [Buffer.from(text)], createCallContext({ stream: true })),
    ).blocks;
    const whole = server!.encodeResponse(collectResponse(all), createResponseContext()) as any;
    const sealed = whole.choices[0].message.tool_calls[0].extra_content.google.thought_signature;
    expect(block).toMatchObject({ type: "call", args: "{}", proof });
    expect(sealed).toMatch(/^tg1\./);
  });

  test("a name that was changed for the upstream is restored for the client", async () => {
    const { fitName } = await import("../../../src/protocols/tool-calls.ts");
    const name = "mcp.server/very long tool name";
    const body = { tools: [{ type: "function", function: { name } }] };
    const chunks = streamed(events(call(fitName(name, 64)), "{}"), body);
    expect(chunks[0].choices[0].delta).toMatchObject({ role: "assistant", content: null });
    expect(chunks[1].choices[0].delta.tool_calls[0].function.name).toBe(name);
  });

  test("a refusal without text is a content filter; in the model's own words it is a response", () => {
    const silent: ModelEvent[] = [
      { type: "start" },
      { type: "finish", reason: "refusal", detail: "Not this." },
    ];
    const spoken = events({ type: "refusal" }, "No.", "refusal");
    expect(
      (server!.encodeResponse(collectResponse(silent), createResponseContext()) as any).choices[0],
    ).toMatchObject({
      finish_reason: "content_filter",
      message: { refusal: "Not this." },
    });
    expect(
      (server!.encodeResponse(collectResponse(spoken), createResponseContext()) as any).choices[0],
    ).toMatchObject({
      finish_reason: "stop",
      message: { refusal: "No.", content: null },
    });
  });

  test("images, citations, log probabilities", () => {
    const all: ModelEvent[] = [
      { type: "start" },
      { type: "open", index: 0, block: { type: "text" } },
      { type: "delta", index: 0, text: "Hi", logprobs: [{ token: "Hi" }] },
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
      { type: "cite", index: 0, citation: { type: "char_location", cited_text: "x" } },
      { type: "close", index: 0 },
      { type: "open", index: 1, block: { type: "image" } },
      { type: "media", index: 1, media: { mime: "image/png", base64: "AAAA" } },
      { type: "close", index: 1 },
      { type: "finish", reason: "stop" },
    ];
    const to = createResponseContext();
    const whole = server!.encodeResponse(collectResponse(all), to) as any;
    expect(whole.choices[0].message).toMatchObject({
      annotations: [
        {
          type: "url_citation",
          url_citation: { url: "https://a.example", title: "A", start_index: 0, end_index: 2 },
        },
      ],
      images: [{ type: "image_url", image_url: { url: "data:image/png;base64,AAAA" } }],
    });
    expect(whole.choices[0].logprobs).toEqual({ content: [{ token: "Hi" }], refusal: null });
    expect(to.losses).toMatchObject([{ field: "citations", how: "dropped" }]);
    const chunks = streamed(all, {});
    expect(chunks[1].choices[0].logprobs).toEqual({ content: [{ token: "Hi" }], refusal: null });
  });

  test("errors always have four members", () => {
    checkError(
      server!.encodeFault(
        { kind: "not_found", message: "No model x.", param: "model", code: "model_not_found" },
        { id: "1" },
      ).body,
    );
    checkError(server!.encodeFault({ kind: "internal", message: "x" }, { id: "1" }).body);
  });

  test("the headers have the tightest limit of each type", () => {
    const limit = { scope: "key", per: "minute", resetsAt: 361_000 } as const;
    expect(
      server!.encodeHeaders!({
        id: "r1",
        now: 1_000,
        limits: [
          { ...limit, unit: "requests", max: 100, remaining: 60 },
          { ...limit, unit: "requests", max: 20, remaining: 3 },
          { ...limit, unit: "tokens", max: 1000n, remaining: -5n },
        ],
      }),
    ).toEqual({
      "x-request-id": "r1",
      "x-ratelimit-limit-requests": "20",
      "x-ratelimit-remaining-requests": "3",
      "x-ratelimit-reset-requests": "6m0s",
      "x-ratelimit-limit-tokens": "1000",
      "x-ratelimit-remaining-tokens": "0",
      "x-ratelimit-reset-tokens": "6m0s",
    });
  });
});
