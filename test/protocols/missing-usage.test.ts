// The priced usage equals the client's, also in passthrough mode: without credible upstream counts,
// the relay adds the settled ones. With them, every byte stays unchanged.
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  collectResponse,
  inputTokens,
  outputTokens,
  type ClientHalf,
  type Operation,
  type Usage,
} from "tollgate/plugin";
import {
  createResponseContext,
  createCallContext,
  splitChunks,
  decode,
  decodeWhole,
  readRecordings,
  runRelay,
  say,
  think,
  type ScriptProtocol,
} from "tollgate/testing";
import { chunking } from "./generators/arbitrary.ts";
import { chats } from "./generators/codecs.ts";
import { inGemini } from "./gemini/speech.ts";
import { trialCount } from "../kit/law-effort.ts";

const SETTLED: Usage = { input: 321, output: 45 };
const ASKED = { stream_options: { include_usage: true }, input: "?" };

const clientOf = (spoken: string) => chats[spoken]!.client as ClientHalf<Operation>;

/** A client's view in this protocol, as strict as our own decoder. */
function read(spoken: string, bytes: Buffer, stream: boolean): { input: number; output: number } {
  const of = createCallContext({ stream });
  const events = stream
    ? decode(clientOf(spoken), [bytes], of)
    : decodeWhole(clientOf(spoken), bytes, of);
  const { usage } = collectResponse(events);
  return { input: inputTokens(usage), output: outputTokens(usage) };
}

const relayed = (
  spoken: string,
  chunks: readonly Buffer[],
  stream: boolean,
  settled: Usage | undefined,
) =>
  runRelay(clientOf(spoken), chunks, createResponseContext({ stream, body: ASKED }), settled).bytes;

const pieces = ({ body }: { body?: unknown }): Buffer[] =>
  ([body].flat() as (string | { bytes: string })[]).map((piece) =>
    Buffer.from(typeof piece === "object" ? piece.bytes : piece),
  );

const SPEECHES = [
  say("Hello there."),
  think("Hm.").say("Yes."),
  say("Look.").call("f", { a: 1 }, "call_1"),
];

const atTheTop = (body: Buffer, stream: boolean): boolean =>
  (stream ? String(body).split(/\r?\n/) : [String(body)])
    .map((line) => line.replace(/^data: ?/, ""))
    .some((json) => json.startsWith("{") && Boolean(JSON.parse(json).usage));

describe.each(Object.keys(chats))("an upstream of %s", (spoken) => {
  it.each([
    ["streams", true],
    ["answers", false],
  ])("%s without counts: the client reads the settled usage, for any chunks", (_, stream) => {
    for (const speech of SPEECHES) {
      const unsaid = speech.usage(null);
      const silent = pieces(
        spoken === "gemini"
          ? inGemini(unsaid, { stream })
          : unsaid.toProtocol(spoken as ScriptProtocol, { stream, body: ASKED } as never),
      );
      const bytes = relayed(spoken, silent, stream, SETTLED);
      expect(read(spoken, bytes, stream)).toEqual({ input: 321, output: 45 });
      if (!stream) continue;
      fc.assert(
        fc.property(chunking, (how) => {
          expect(String(relayed(spoken, splitChunks(silent, how), stream, SETTLED))).toBe(
            String(bytes),
          );
        }),
        { numRuns: trialCount(50) },
      );
    }
  });

  it("has its own counts: no byte is added", () => {
    const all = readRecordings(new URL(`../fixtures/recordings/${spoken}`, import.meta.url));
    let counted = 0;
    for (const { body, status, headers, name } of all) {
      if (status !== 200) continue;
      const stream = /event-stream/.test(String(headers["content-type"]));
      let without: ReturnType<typeof runRelay>;
      try {
        without = runRelay(
          clientOf(spoken),
          [body],
          createResponseContext({ stream, body: ASKED }),
        );
      } catch {
        continue;
      }
      if (without.usage.output === undefined) continue;
      // Some send it inside a choice or under another name, where clients do not look.
      if (spoken === "chat-completions" && !atTheTop(body, stream)) continue;
      counted++;
      expect(String(relayed(spoken, [body], stream, SETTLED)), name).toBe(String(without.bytes));
    }
    expect(counted).toBeGreaterThan(2);
  });
});

const sse = (...events: (object | string)[]): Buffer =>
  Buffer.from(
    events
      .map((e) => {
        const data = typeof e === "string" ? e : JSON.stringify(e);
        const type = typeof e === "object" && "type" in e ? `event: ${String(e.type)}\n` : "";
        return `${type}data: ${data}\n\n`;
      })
      .join(""),
  );

describe("chat completions", () => {
  const chunk = (more: object) => ({
    id: "c1",
    object: "chat.completion.chunk",
    created: 7,
    model: "up",
    ...more,
  });
  const said = [
    chunk({ choices: [{ index: 0, delta: { role: "assistant", content: "Hi" } }] }),
    chunk({ choices: [{ index: 0, delta: {}, finish_reason: "stop" }] }),
  ];
  const usages = (bytes: Buffer) =>
    String(bytes)
      .split("\n\n")
      .filter((event) => event.startsWith("data: {"))
      .map((event) => JSON.parse(event.slice(6)))
      .filter((one) => one.usage);

  it("adds a chunk with usage at the end", () => {
    const text = String(relayed("chat-completions", [sse(...said, "[DONE]")], true, SETTLED));
    const [...events] = text.trimEnd().split("\n\n");
    expect(events.at(-1)).toBe("data: [DONE]");
    expect(JSON.parse(events.at(-2)!.slice(6))).toEqual({
      id: "c1",
      object: "chat.completion.chunk",
      created: 7,
      model: "provider/model",
      choices: [],
      usage: { prompt_tokens: 321, completion_tokens: 45, total_tokens: 366 },
    });
  });

  it("adds nothing for a client that did not request usage", () => {
    const to = createResponseContext({ stream: true, body: {} });
    const { bytes } = runRelay(clientOf("chat-completions"), [sse(...said, "[DONE]")], to, SETTLED);
    expect(usages(bytes)).toEqual([]);
  });

  it("replaces impossible counts", () => {
    const broken = chunk({ choices: [], usage: { prompt_tokens: -1, completion_tokens: 2 } });
    const bytes = relayed("chat-completions", [sse(...said, broken, "[DONE]")], true, SETTLED);
    expect(usages(bytes).map(({ usage }) => usage.prompt_tokens)).toEqual([321]);
  });

  it("moves usage to the standard place if an upstream sent it elsewhere", () => {
    const usage = { prompt_tokens: 321, completion_tokens: 45, total_tokens: 366 };
    const last = chunk({ choices: [], x_groq: { id: "r", usage } });
    const bytes = relayed("chat-completions", [sse(...said, last, "[DONE]")], true, SETTLED);
    expect(usages(bytes).map((one) => one.usage)).toEqual([usage]);
  });

  it("adds a missing [DONE] after it", () => {
    const text = String(relayed("chat-completions", [sse(...said)], true, SETTLED));
    expect(text.indexOf('"total_tokens":366')).toBeGreaterThan(0);
    expect(text.endsWith("data: [DONE]\n\n")).toBe(true);
  });
});

describe("messages", () => {
  const start = {
    type: "message_start",
    message: { id: "m1", type: "message", role: "assistant", model: "up", content: [] },
  };
  const block = [
    { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
    { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "Hi" } },
    { type: "content_block_stop", index: 0 },
  ];
  const ends = (more: object) => ({
    type: "message_delta",
    delta: { stop_reason: "max_tokens", stop_sequence: null },
    ...more,
  });
  const stop = { type: "message_stop" };
  const events = (bytes: Buffer): any[] =>
    String(bytes)
      .trimEnd()
      .split("\n\n")
      .map((event) => JSON.parse(event.slice(event.indexOf("data: ") + 6)));
  const through = (...all: object[]) => events(relayed("messages", [sse(...all)], true, SETTLED));

  it("adds usage to the stop reason, once, before the end; the first event has initial counts", () => {
    const told = through(start, ...block, ends({}), stop);
    expect(told.map(({ type }) => type)).toEqual([
      "message_start",
      "content_block_start",
      "content_block_delta",
      "content_block_stop",
      "message_delta",
      "message_stop",
    ]);
    expect(told[0].message.usage).toMatchObject({ input_tokens: 0, output_tokens: 0 });
    expect(told[4]).toMatchObject({
      delta: { stop_reason: "max_tokens" },
      usage: { input_tokens: 321, output_tokens: 45 },
    });
  });

  it("adds it without a stop reason, and without an end", () => {
    expect(through(start, ...block, stop).at(-2)).toMatchObject({
      type: "message_delta",
      delta: { stop_reason: "end_turn" },
      usage: { output_tokens: 45 },
    });
    const told = through(start, ...block, ends({}));
    expect(told.slice(-2).map(({ type }) => type)).toEqual(["message_delta", "message_stop"]);
    expect(told.at(-2).usage.output_tokens).toBe(45);
  });

  it("leaves late counts to the upstream: stop reason and counts are sent together", () => {
    const late = { type: "message_delta", delta: {}, usage: { output_tokens: 9 } };
    const deltas = through(start, ...block, ends({}), late, stop).filter(
      ({ type }) => type === "message_delta",
    );
    expect(deltas).toMatchObject([
      { delta: { stop_reason: "max_tokens" }, usage: { output_tokens: 9 } },
    ]);
  });
});
