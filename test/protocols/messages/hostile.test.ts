// A broken or hostile upstream: an error or a valid response, in both modes, never a hang or a
// crash.
import { describe, expect, test } from "vitest";
import { getFault } from "../../../src/model/error.ts";
import { collectResponse } from "../../../src/model/response-collector.ts";
import { createResponseContext, createCallContext } from "../../../src/testing/codec-contexts.ts";
import { decode, decodeWhole, runRelay } from "../../../src/testing/codec.ts";
import { client } from "./recorded.ts";

const of = createCallContext({ stream: true });
const to = createResponseContext({ stream: true });

const event = (type: string, fields: object = {}) =>
  `event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`;
const START = event("message_start", {
  message: { id: "msg_1", model: "m", content: [], usage: { input_tokens: 3, output_tokens: 1 } },
});
const open = (index: number, block: object = { type: "text", text: "" }) =>
  event("content_block_start", { index, content_block: block });
const delta = (index: number, d: object) => event("content_block_delta", { index, delta: d });
const say = (index: number, text: string) => delta(index, { type: "text_delta", text });
const stop = (index: number) => event("content_block_stop", { index });
const END = event("message_delta", {
  delta: { stop_reason: "end_turn" },
  usage: { output_tokens: 2 },
});
const STOP = event("message_stop");
const HI = open(0) + say(0, "Hi") + stop(0);

const translated = (text: string) => collectResponse(decode(client, [Buffer.from(text)], of));
const passthrough = (text: string) => runRelay(client, [Buffer.from(text)], to);
const faultIn = (run: () => unknown) => {
  try {
    run();
  } catch (error) {
    return getFault(error) ?? expect.unreachable(`not a fault: ${String(error)}`);
  }
  return undefined;
};

describe("is an error in both modes", () => {
  test.each([
    ["nothing", "", "truncated"],
    ["only a ping", event("ping"), "truncated"],
    ["no end", START + HI, "truncated"],
    ["garbage", "%PDF-1.4 \u0000\u0001 nonsense\n\n", "truncated"],
    ["a start that is no JSON", "event: message_start\ndata: {\n\n", "bad_stream"],
    ["an end that is no JSON", START + HI + "event: message_delta\ndata: nope\n\n", "bad_stream"],
    ["an end that is no object", START + HI + "event: message_delta\ndata: [1]\n\n", "bad_stream"],
  ])("%s", (_what, text, code) => {
    expect(faultIn(() => translated(text))).toMatchObject({ kind: "upstream", code });
    expect(faultIn(() => passthrough(text))).toMatchObject({ kind: "upstream", code });
  });

  test("an error event, with its own message", () => {
    const text =
      START + HI + event("error", { error: { type: "overloaded_error", message: "Overloaded" } });
    const fault = { kind: "overloaded", message: "Overloaded" };
    expect(faultIn(() => translated(text))).toMatchObject(fault);
    expect(faultIn(() => passthrough(text))).toMatchObject(fault);
  });

  test("events before an error are forwarded, and the error itself is not", () => {
    const out: Buffer[] = [];
    const tap = client.createPassthrough!(
      {
        setContentType() {},
        write: (b) => out.push(b),
        reportContent() {},
        reportStart() {},
        reportUsage() {},
        reportFinish() {},
      },
      to,
      {},
    );
    expect(() =>
      tap.push(Buffer.from(START + HI + event("error", { error: { message: "x" } }) + STOP)),
    ).toThrow();
    expect(Buffer.concat(out).toString()).toContain("content_block_stop");
    expect(Buffer.concat(out).toString()).not.toContain("error");
    tap.writeFault({ kind: "upstream", message: "x" });
    expect(Buffer.concat(out).toString()).toMatch(/event: error\ndata: {"type":"error".*\n\n$/);
  });

  test.each([50, 33])("a line of %i MB", (mb) => {
    const piece = Buffer.alloc(1024 * 1024, "a");
    for (const push of [
      client.createDecoder(() => {}, of, {}),
      client.createPassthrough!(
        {
          setContentType() {},
          write() {},
          reportContent() {},
          reportStart() {},
          reportUsage() {},
          reportFinish() {},
        },
        to,
        {},
      ),
    ]) {
      push.push(Buffer.from(`${START}event: content_block_delta\ndata: {"x":"`));
      expect(
        faultIn(() => {
          for (let i = 0; i < mb; i++) push.push(piece);
        }),
      ).toMatchObject({ kind: "upstream", code: "event_too_large" });
    }
  });
});

describe("is an error if it must be decoded", () => {
  test.each([
    [
      "one malformed event among good ones",
      START + HI + "event: content_block_delta\ndata: {oops\n\n" + END + STOP,
    ],
    ["a delta for a block that is not open", START + say(4, "x") + END + STOP],
    ["a start without a block", START + event("content_block_start", { index: 0 }) + END + STOP],
    ["a call without a name", START + open(0, { type: "tool_use", id: "a" }) + END + STOP],
    ["bytes that are no text", `${START}${open(0)}event: content_block_delta\ndata: "\u0000`],
  ])("%s", (_what, text) => {
    expect(faultIn(() => translated(text))).toMatchObject({ kind: "upstream" });
  });

  test("invalid UTF-8", () => {
    const bytes = Buffer.concat([
      Buffer.from(START),
      Buffer.from('data: {"a":"'),
      Buffer.from([0xff, 0xfe]),
      Buffer.from('"}\n\n'),
    ]);
    expect(faultIn(() => decode(client, [bytes], of))).toMatchObject({ code: "invalid_utf8" });
  });
});

describe("is decoded nevertheless", () => {
  const text = (answer: ReturnType<typeof translated>) =>
    answer.blocks.map((b) => ("text" in b ? b.text : b.type));

  test.each([
    [
      "indexes with gaps",
      START + open(3) + say(3, "a") + stop(3) + open(9) + say(9, "b") + stop(9) + END + STOP,
      ["a", "b"],
    ],
    [
      "blocks open together",
      START + open(0) + open(1) + say(1, "b") + say(0, "a") + stop(0) + stop(1) + END + STOP,
      ["a", "b"],
    ],
    ["a block that is never closed", START + open(0) + say(0, "a") + END + STOP, ["a"]],
    [
      "a block that is opened twice",
      START + open(0) + say(0, "a") + open(0) + say(0, "b") + stop(0) + END + STOP,
      ["a", "b"],
    ],
    ["no start", HI + END + STOP, ["Hi"]],
    ["two starts", START + START + HI + END + STOP, ["Hi"]],
    ["two ends", START + HI + END + END + STOP + STOP, ["Hi"]],
    ["an end without a word", START + HI + STOP, ["Hi"]],
    [
      "text in the start of its block",
      START + open(0, { type: "text", text: "a" }) + say(0, "b") + stop(0) + END + STOP,
      ["ab"],
    ],
    [
      "a delta of another kind",
      START +
        open(0, { type: "thinking", thinking: "" }) +
        delta(0, { type: "thinking_delta", thinking: "t" }) +
        say(0, "a") +
        stop(0) +
        END +
        STOP,
      ["t", "a"],
    ],
    [
      "deltas that nobody knows",
      START + open(0) + delta(0, { type: "glow", x: 1 }) + say(0, "a") + stop(0) + END + STOP,
      ["a"],
    ],
    ["events that nobody knows", START + event("aurora", { x: 1 }) + HI + END + STOP, ["Hi"]],
    ["a close of nothing", START + stop(7) + HI + END + STOP, ["Hi"]],
    ["the end in another's manner", START + HI + END + "data: [DONE]\n\n", ["Hi"]],
    ["no last blank line", START + HI + END + STOP.trimEnd(), ["Hi"]],
  ])("%s", (_what, stream, said) => {
    const answer = translated(stream);
    expect(text(answer)).toEqual(said);
    expect(answer.finish.reason).toBe("stop");
  });

  test("a call with its arguments in the start event", () => {
    const tool = { type: "tool_use", id: "a", name: "f", input: { x: 1 } };
    const answer = translated(START + open(0, tool) + stop(0) + END + STOP);
    expect(answer.blocks).toEqual([
      { type: "call", id: "a", name: "f", tool: "function", args: '{"x":1}' },
    ]);
    expect(answer.finish.reason).toBe("tool_calls");
  });

  test("a call without an ID gets a deterministic one", () => {
    const stream =
      START + open(0, { type: "tool_use", name: "f", input: {} }) + stop(0) + END + STOP;
    const [block] = translated(stream).blocks as unknown as { id: string }[];
    expect(block!.id).toMatch(/^toolu_[a-zA-Z0-9_-]+$/);
    expect(translated(stream).blocks).toEqual([{ ...block }]);
  });

  test("the last signature counts", () => {
    const sign = (signature: string) => delta(0, { type: "signature_delta", signature });
    const stream =
      START +
      open(0, { type: "thinking", thinking: "", signature: "" }) +
      sign("a") +
      sign("b") +
      stop(0) +
      END +
      STOP;
    expect(translated(stream).blocks[0]).toMatchObject({ proof: { data: "b" } });
  });
});

describe("impossible counts", () => {
  const used = (usage: object) => {
    const end = event("message_delta", { delta: { stop_reason: "end_turn" }, usage });
    return [translated(START + HI + end + STOP).usage, passthrough(START + HI + end + STOP).usage];
  };

  test.each([-5, 1.5, 1e12, "7", null, Number.MAX_SAFE_INTEGER])(
    "%j is ignored",
    (output_tokens) => {
      for (const usage of used({ output_tokens })) expect(usage).toEqual({ input: 3 });
    },
  );

  test("reasoning is part of the output", () => {
    for (const usage of used({ output_tokens: 5, output_tokens_details: { thinking_tokens: 9 } }))
      expect(usage).toMatchObject({ output: 5, reasoning: 5 });
  });

  test("usage that is no object is ignored", () => {
    for (const usage of used([1] as never)) expect(usage).toEqual({ input: 3 });
  });

  test("the last report counts, and reports are not summed", () => {
    const more = (n: number) => event("message_delta", { delta: {}, usage: { output_tokens: n } });
    expect(
      translated(START + HI + more(2) + more(4) + END.replace(":2", ":9") + STOP).usage.output,
    ).toBe(9);
  });
});

describe("a non-streaming response", () => {
  test.each([
    ["", "bad_answer"],
    ["<html>", "bad_answer"],
    ["null", "bad_answer"],
    ["[]", "bad_answer"],
    ["{}", "bad_answer"],
    ['{"content":"x"}', "bad_answer"],
  ])("%j is an error in both modes", (body, code) => {
    for (const run of [
      () => decodeWhole(client, Buffer.from(body), createCallContext()),
      () => runRelay(client, [Buffer.from(body)], createResponseContext()),
    ])
      expect(faultIn(run)).toMatchObject({ kind: "upstream", code });
  });

  test("an error with status 200 is an error", () => {
    const body = '{"type":"error","error":{"type":"rate_limit_error","message":"Slow down."}}';
    expect(
      faultIn(() => decodeWhole(client, Buffer.from(body), createCallContext())),
    ).toMatchObject({
      kind: "rate_limited",
      message: "Slow down.",
    });
  });

  test("a duplicate name is encoded again", () => {
    const body =
      '{"model":"a","id":"msg_1","content":[],"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":1},"model":"b"}';
    const { bytes } = runRelay(client, [Buffer.from(body)], createResponseContext());
    expect(bytes.toString().match(/"model"/g)).toHaveLength(1);
    expect(JSON.parse(bytes.toString()).model).toBe("provider/model");
  });
});
