// Every ordered pair of protocols with responses: requests are kept or reported, and responses are
// the same, streaming and non-streaming.
import { readFileSync } from "node:fs";
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  getFault,
  collectResponse,
  type Block,
  type Body,
  type ChatRequest,
  type JsonObject,
  type ModelEvent,
} from "tollgate/plugin";
import { chatCompletions } from "tollgate/protocols/chat-completions";
import { messages } from "tollgate/protocols/messages";
import { responses } from "tollgate/protocols/responses";
import {
  createResponseContext,
  createCallContext,
  call,
  decode,
  decodeWhole,
  encodeText,
  withoutUndefined,
  say,
  think,
  type ModelScript,
} from "tollgate/testing";
import * as chatWire from "../wire/chat-completions.ts";
import * as messagesWire from "../wire/messages.ts";
import { judge, replay } from "./oracle.ts";
import { trialCount } from "../../kit/law-effort.ts";

const codecs = {
  "chat-completions": chatCompletions(),
  messages: messages(),
  responses: responses(),
};
type Name = keyof typeof codecs;
const half = (name: Name) => codecs[name] as Required<(typeof codecs)[Name]>;
const pairs: [from: Name, to: Name][] = [
  ["responses", "chat-completions"],
  ["responses", "messages"],
  ["chat-completions", "responses"],
  ["messages", "responses"],
  ["responses", "responses"],
];

const bytesOf = (answer: { body?: unknown }) =>
  Buffer.from(([answer.body].flat() as any[]).map((p) => p.bytes ?? p).join(""));

const usage = { input: 100, cache_read: 900, output: 100, reasoning: 60 };
const speeches: Record<string, ModelScript> = {
  text: say("Hello, wörld 🌍!").usage(usage),
  "text, then a tool": say("Let me look.").call("get_weather", { city: "Oslo" }).usage(usage),
  "reasoning, then text": think("Think.", "c2ln").say("Yes.").usage(usage),
  "reasoning, then a tool": think("Hm.", "c2ln").call("f", {}).usage(usage),
  "parallel tools": call("f", { a: 1 })
    .call("g", { b: [1, '"}'] })
    .usage(usage),
  "cut at the limit": say("And so").finish("length").usage(usage),
  nothing: say("").usage(usage),
};
const answers = (upstream: Name): [string, ModelEvent[]][] =>
  Object.entries(speeches).flatMap(([name, speech]) => {
    const { client } = half(upstream);
    const of = createCallContext({ stream: true });
    return [
      [
        `${name}, streamed`,
        decode(
          client,
          [
            bytesOf(
              speech.toProtocol(upstream, {
                stream: true,
                body: { stream_options: { include_usage: true } },
              }),
            ),
          ],
          of,
        ),
      ],
      [
        `${name}, whole`,
        decodeWhole(client, bytesOf(speech.toProtocol(upstream)), createCallContext()),
      ],
    ];
  });

/** Content of a response for its reader: text, calls, counts. */
function told(events: readonly ModelEvent[]) {
  const { blocks, usage: u, finish } = collectResponse(events);
  const words = (type: string) =>
    blocks.flatMap((b) => (b.type === type && "text" in b && b.text ? [b.text] : [])).join("");
  return {
    text: words("text"),
    refusal: words("refusal"),
    calls: blocks.flatMap((b) => (b.type === "call" ? [[b.name, JSON.parse(b.args || "{}")]] : [])),
    finish: finish.reason === "tool_calls" ? "stop" : finish.reason,
    usage: { input: u.input, cache_read: u.cache_read, output: u.output },
  };
}

describe.each(pairs)("a %s client of a %s upstream", (from, upstream) => {
  const { server, client } = half(from);
  const check = (text: string) => {
    if (from === "responses") replay(text);
    else if (from === "messages") messagesWire.checkStream(text, "complete");
    else chatWire.checkStream(text, "complete", true);
  };

  it.each(answers(upstream))("receives the same content: %s", (_name, events) => {
    const body: Body = { model: "m", stream_options: { include_usage: true } };
    const streamed = encodeText(server, events, createResponseContext({ stream: true, body }));
    check(streamed);
    const whole = JSON.parse(
      JSON.stringify(
        server.encodeResponse(collectResponse(events), createResponseContext({ body })),
      ),
    );
    if (from === "responses") judge(whole);
    const inStream = told(
      decode(client, [Buffer.from(streamed)], createCallContext({ stream: true })),
    );
    expect(inStream).toEqual(
      told(decodeWhole(client, Buffer.from(JSON.stringify(whole)), createCallContext())),
    );
    expect(inStream).toEqual(told(events));
  });

  it("returns proofs to their upstream through the client", () => {
    if (upstream === "chat-completions") return;
    const speech = think("Hm, \n think.", "c2ln").call("f", { a: 1 });
    const events = decode(
      half(upstream).client,
      [bytesOf(speech.toProtocol(upstream, { stream: true }))],
      createCallContext({ stream: true }),
    );
    const whole = JSON.parse(
      JSON.stringify(server.encodeResponse(collectResponse(events), createResponseContext())),
    );
    // In the form in which SDKs send a response back.
    const history: Body =
      from === "responses"
        ? {
            model: "m",
            input: [
              { role: "user", content: "Hi" },
              ...whole.output,
              { type: "function_call_output", call_id: whole.output.at(-1).call_id, output: "ok" },
            ],
          }
        : from === "messages"
          ? {
              model: "m",
              max_tokens: 100,
              messages: [
                { role: "user", content: "Hi" },
                { role: "assistant", content: whole.content },
                {
                  role: "user",
                  content: [
                    { type: "tool_result", tool_use_id: whole.content.at(-1).id, content: "ok" },
                  ],
                },
              ],
            }
          : {
              model: "m",
              messages: [
                { role: "user", content: "Hi" },
                whole.choices[0].message,
                {
                  role: "tool",
                  tool_call_id: whole.choices[0].message.tool_calls[0].id,
                  content: "ok",
                },
              ],
            };
    const request = server.decodeRequest(history, "generate") as ChatRequest;
    const body = half(upstream).client.encodeRequest(
      request,
      createCallContext({ info: { model: "m", operation: "chat", can: { reasoning: true } } }),
    );
    expect(JSON.stringify(body)).toContain(
      upstream === "messages" ? '"signature":"c2ln"' : '"encrypted_content":"c2ln"',
    );
  });
});

/** Positions of the same content in each protocol. */
const PNG = "iVBORw0KGgo=";
const PDF = "JVBERi0=";
const WAV = "UklGRg==";
const parts: Record<Name, Record<string, JsonObject | undefined>> = {
  "chat-completions": {
    "image bytes": { type: "image_url", image_url: { url: `data:image/png;base64,${PNG}` } },
    "image address": { type: "image_url", image_url: { url: "https://a.example/i.png" } },
    "document bytes": {
      type: "file",
      file: { filename: "a.pdf", file_data: `data:application/pdf;base64,${PDF}` },
    },
    "document address": undefined,
    audio: { type: "input_audio", input_audio: { data: WAV, format: "wav" } },
  },
  messages: {
    "image bytes": {
      type: "image",
      source: { type: "base64", media_type: "image/png", data: PNG },
    },
    "image address": { type: "image", source: { type: "url", url: "https://a.example/i.png" } },
    "document bytes": {
      type: "document",
      title: "a.pdf",
      source: { type: "base64", media_type: "application/pdf", data: PDF },
    },
    "document address": {
      type: "document",
      source: { type: "url", url: "https://a.example/a.pdf" },
    },
    audio: undefined,
  },
  responses: {
    "image bytes": { type: "input_image", image_url: `data:image/png;base64,${PNG}` },
    "image address": { type: "input_image", image_url: "https://a.example/i.png" },
    "document bytes": {
      type: "input_file",
      filename: "a.pdf",
      file_data: `data:application/pdf;base64,${PDF}`,
    },
    "document address": { type: "input_file", file_url: "https://a.example/a.pdf" },
    audio: { type: "input_audio", input_audio: { data: WAV, format: "wav" } },
  },
};
const inUser: Record<Name, (part: JsonObject) => Body> = {
  "chat-completions": (part) => ({
    model: "m",
    messages: [{ role: "user", content: [{ type: "text", text: "See:" }, part] }],
  }),
  messages: (part) => ({
    model: "m",
    max_tokens: 9,
    messages: [{ role: "user", content: [{ type: "text", text: "See:" }, part] }],
  }),
  responses: (part) => ({
    model: "m",
    input: [{ role: "user", content: [{ type: "input_text", text: "See:" }, part] }],
  }),
};
const inResult: Record<Name, (part: JsonObject) => Body> = {
  "chat-completions": (part) => ({
    model: "m",
    messages: [
      { role: "user", content: "Hi" },
      {
        role: "assistant",
        content: null,
        tool_calls: [{ id: "c1", type: "function", function: { name: "f", arguments: "{}" } }],
      },
      { role: "tool", tool_call_id: "c1", content: [{ type: "text", text: "See:" }, part] },
    ],
  }),
  messages: (part) => ({
    model: "m",
    max_tokens: 9,
    messages: [
      { role: "user", content: "Hi" },
      { role: "assistant", content: [{ type: "tool_use", id: "c1", name: "f", input: {} }] },
      {
        role: "user",
        content: [
          {
            type: "tool_result",
            tool_use_id: "c1",
            content: [{ type: "text", text: "See:" }, part],
          },
        ],
      },
    ],
  }),
  responses: (part) => ({
    model: "m",
    input: [
      { role: "user", content: "Hi" },
      { type: "function_call", call_id: "c1", name: "f", arguments: "{}" },
      {
        type: "function_call_output",
        call_id: "c1",
        output: [{ type: "input_text", text: "See:" }, part],
      },
    ],
  }),
};

type Verdict = "carried" | "moved" | "refused" | "lost";

function verdict(from: Name, to: Name, body: Body): Verdict {
  const request = half(from).server.decodeRequest(body, "generate") as ChatRequest;
  const sent = found(request);
  expect(sent, "the sender's own codec sees it").toHaveLength(1);
  // A copy, so that the encoded form is compared.
  const of = createCallContext();
  let wire: Body;
  try {
    wire = half(to).client.encodeRequest(structuredClone(request), of);
  } catch (error) {
    expect(getFault(error)?.kind, String(error)).toBe("unsupported");
    return "refused";
  }
  const got = found(
    half(to).server.decodeRequest(JSON.parse(JSON.stringify(wire)), "generate") as ChatRequest,
  );
  if (got.length === 0) {
    expect(of.losses, "what is not there was declared").not.toEqual([]);
    return "lost";
  }
  expect(withoutUndefined(got[0]!.media)).toEqual(withoutUndefined(sent[0]!.media));
  if (got[0]!.place === sent[0]!.place) return "carried";
  expect(of.losses, "what stands elsewhere was declared").not.toEqual([]);
  return "moved";
}

function found(request: ChatRequest): { place: string; media: unknown }[] {
  const look = (blocks: readonly Block[], place: string): { place: string; media: unknown }[] =>
    blocks.flatMap((b) =>
      b.type === "result"
        ? look(b.blocks, "result")
        : "media" in b
          ? [{ place, media: b.media }]
          : [],
    );
  return request.turns.flatMap((turn) => look(turn.blocks, turn.role));
}

describe("a conversation", () => {
  const word = fc
    .string({ unit: "grapheme", minLength: 1, maxLength: 6 })
    .filter((w) => w.trim() !== "");
  const json = fc.constantFrom("{}", '{"a":1}', '{"b":["x"]}');
  /** The request: a step with its calls and their results, or text. */
  const round = fc.record({
    ask: word,
    said: fc.option(word),
    calls: fc.array(fc.tuple(json, word), { maxLength: 3 }),
  });
  const talk = fc.record({
    instructions: fc.option(word),
    rounds: fc.array(round, { minLength: 1, maxLength: 4 }),
    last: word,
    choice: fc.constantFrom("auto", "required", "none", undefined),
    temperature: fc.constantFrom(0.5, 1, undefined),
  });
  type Talk = typeof talk extends fc.Arbitrary<infer T> ? T : never;

  const bodies: Record<Name, (t: Talk) => Body> = {
    responses: ({ instructions, rounds, last, choice, temperature }) => ({
      model: "m",
      instructions,
      tool_choice: choice,
      temperature,
      max_output_tokens: 99,
      tools: [
        {
          type: "function",
          name: "f",
          description: "F",
          parameters: { type: "object", properties: {} },
          strict: false,
        },
      ],
      input: [
        ...rounds.flatMap(({ ask, said, calls }, r): JsonObject[] => [
          { role: "user", content: ask },
          ...(said === null ? [] : [{ role: "assistant", content: said }]),
          ...calls.map(([args], i) => ({
            type: "function_call",
            call_id: `c${r}_${i}`,
            name: "f",
            arguments: args,
          })),
          ...calls.map(([, out], i) => ({
            type: "function_call_output",
            call_id: `c${r}_${i}`,
            output: out,
          })),
        ]),
        { role: "user", content: last },
      ],
    }),
    "chat-completions": ({ instructions, rounds, last, choice, temperature }) => ({
      model: "m",
      tool_choice: choice,
      temperature,
      max_tokens: 99,
      tools: [
        {
          type: "function",
          function: {
            name: "f",
            description: "F",
            parameters: { type: "object", properties: {} },
            strict: false,
          },
        },
      ],
      messages: [
        ...(instructions === null ? [] : [{ role: "system", content: instructions }]),
        ...rounds.flatMap(({ ask, said, calls }, r): JsonObject[] => [
          { role: "user", content: ask },
          ...(said === null && calls.length === 0
            ? []
            : [
                {
                  role: "assistant",
                  content: said,
                  ...(calls.length > 0 && {
                    tool_calls: calls.map(([args], i) => ({
                      id: `c${r}_${i}`,
                      type: "function",
                      function: { name: "f", arguments: args },
                    })),
                  }),
                },
              ]),
          ...calls.map(([, out], i) => ({
            role: "tool",
            tool_call_id: `c${r}_${i}`,
            content: out,
          })),
        ]),
        { role: "user", content: last },
      ],
    }),
    messages: ({ instructions, rounds, last, choice, temperature }) => ({
      model: "m",
      max_tokens: 99,
      ...(instructions !== null && { system: instructions }),
      temperature,
      ...(choice && { tool_choice: { type: choice === "required" ? "any" : choice } }),
      tools: [{ name: "f", description: "F", input_schema: { type: "object", properties: {} } }],
      messages: [
        ...rounds.flatMap(({ ask, said, calls }, r): JsonObject[] => [
          { role: "user", content: ask },
          ...(said === null && calls.length === 0
            ? []
            : [
                {
                  role: "assistant",
                  content: [
                    ...(said === null ? [] : [{ type: "text", text: said }]),
                    ...calls.map(([args], i) => ({
                      type: "tool_use",
                      id: `c${r}_${i}`,
                      name: "f",
                      input: JSON.parse(args),
                    })),
                  ],
                },
              ]),
          ...(calls.length === 0
            ? []
            : [
                {
                  role: "user",
                  content: calls.map(([, out], i) => ({
                    type: "tool_result",
                    tool_use_id: `c${r}_${i}`,
                    content: out,
                  })),
                },
              ]),
        ]),
        { role: "user", content: last },
      ],
    }),
  };

  /**
   * Its content in order. If one protocol has two messages and another one, the text is the same.
   */
  function gist(request: ChatRequest) {
    const said: [string, string][] = [];
    const add = (who: string, what: string) => {
      const before = said.at(-1);
      if (before?.[0] === who && (who === "user" || who === "assistant")) before[1] += what;
      else said.push([who, what]);
    };
    for (const { role, blocks } of request.turns)
      for (const b of blocks) {
        if (b.type === "text") add(role, b.text);
        if (b.type === "call")
          add("call", `${b.id} ${b.name} ${JSON.stringify(JSON.parse(b.args))}`);
        if (b.type === "result")
          add("result", `${b.callId} ${b.blocks.map((x) => ("text" in x ? x.text : "")).join("")}`);
      }
    return {
      said,
      instructions: request.instructions.map((b) => ("text" in b ? b.text : "")).join(""),
      choice: request.toolChoice,
      temperature: request.sampling.temperature,
      max: request.output.maxTokens,
      tools: request.tools.map((t) => [t.name, t.description, t.schema]),
    };
  }

  it.each(pairs)("keeps its content from %s to %s", (from, to) =>
    fc.assert(
      fc.property(talk, (t) => {
        const request = half(from).server.decodeRequest(
          JSON.parse(JSON.stringify(bodies[from](t))),
          "generate",
        ) as ChatRequest;
        const of = createCallContext();
        const wire = JSON.parse(
          JSON.stringify(half(to).client.encodeRequest(structuredClone(request), of)),
        );
        const arrived = half(to).server.decodeRequest(wire, "generate") as ChatRequest;
        expect(gist(arrived)).toEqual(gist(request));
        expect(of.losses).toEqual([]);
      }),
      { numRuns: trialCount(60) },
    ),
  );

  it("of a coding client reaches every protocol, and unsupported fields are reported", () => {
    const codex = JSON.parse(
      readFileSync(
        new URL("../../fixtures/recordings/responses/custom-tool/request.json", import.meta.url),
        "utf8",
      ),
    );
    const request = half("responses").server.decodeRequest(codex, "generate") as ChatRequest;
    for (const to of ["chat-completions", "messages"] as const) {
      const of = createCallContext();
      const wire = half(to).client.encodeRequest(request, of);
      expect(JSON.stringify(wire)).toContain("apply_patch");
      expect(of.losses.map((l) => l.field)).toEqual(
        expect.arrayContaining(["tools.web_search", "tools.tool_search"]),
      );
    }
  });
});

describe("media of users", () => {
  const table: string[] = [];
  for (const [from, to] of pairs)
    for (const [kind, part] of Object.entries(parts[from]))
      for (const [place, build] of [
        ["user", inUser],
        ["tool result", inResult],
      ] as const)
        if (part)
          table.push(
            `${from} → ${to}, ${kind} in ${place}: ${verdict(from, to, build[from](part))}`,
          );

  it("is sent or rejected, as declared", () =>
    expect(table).toMatchInlineSnapshot(`
                  [
                    "responses → chat-completions, image bytes in user: carried",
                    "responses → chat-completions, image bytes in tool result: moved",
                    "responses → chat-completions, image address in user: carried",
                    "responses → chat-completions, image address in tool result: moved",
                    "responses → chat-completions, document bytes in user: carried",
                    "responses → chat-completions, document bytes in tool result: moved",
                    "responses → chat-completions, document address in user: refused",
                    "responses → chat-completions, document address in tool result: refused",
                    "responses → chat-completions, audio in user: carried",
                    "responses → chat-completions, audio in tool result: moved",
                    "responses → messages, image bytes in user: carried",
                    "responses → messages, image bytes in tool result: carried",
                    "responses → messages, image address in user: carried",
                    "responses → messages, image address in tool result: carried",
                    "responses → messages, document bytes in user: carried",
                    "responses → messages, document bytes in tool result: carried",
                    "responses → messages, document address in user: carried",
                    "responses → messages, document address in tool result: carried",
                    "responses → messages, audio in user: refused",
                    "responses → messages, audio in tool result: refused",
                    "chat-completions → responses, image bytes in user: carried",
                    "chat-completions → responses, image bytes in tool result: carried",
                    "chat-completions → responses, image address in user: carried",
                    "chat-completions → responses, image address in tool result: carried",
                    "chat-completions → responses, document bytes in user: carried",
                    "chat-completions → responses, document bytes in tool result: carried",
                    "chat-completions → responses, audio in user: carried",
                    "chat-completions → responses, audio in tool result: refused",
                    "messages → responses, image bytes in user: carried",
                    "messages → responses, image bytes in tool result: carried",
                    "messages → responses, image address in user: carried",
                    "messages → responses, image address in tool result: carried",
                    "messages → responses, document bytes in user: carried",
                    "messages → responses, document bytes in tool result: carried",
                    "messages → responses, document address in user: carried",
                    "messages → responses, document address in tool result: carried",
                    "responses → responses, image bytes in user: carried",
                    "responses → responses, image bytes in tool result: carried",
                    "responses → responses, image address in user: carried",
                    "responses → responses, image address in tool result: carried",
                    "responses → responses, document bytes in user: carried",
                    "responses → responses, document bytes in tool result: carried",
                    "responses → responses, document address in user: carried",
                    "responses → responses, document address in tool result: carried",
                    "responses → responses, audio in user: carried",
                    "responses → responses, audio in tool result: refused",
                  ]
                `));
});
