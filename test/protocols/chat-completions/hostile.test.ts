// Upstream misbehavior, in both modes: an error or a valid response, never a hang, a crash, or a
// partial result.
import { describe, expect, test } from "vitest";
import { chatCompletions } from "../../../src/protocols/chat-completions/index.ts";
import { getFault, collectResponse, type Fault } from "../../../src/plugin/index.ts";
import {
  createResponseContext,
  createCallContext,
  decode,
  decodeWhole,
  runRelay,
} from "../../../src/testing/index.ts";

const { client } = chatCompletions();
const chunk = (delta: object, finish: string | null = null, more: object = {}) =>
  `data: ${JSON.stringify({ id: "c1", object: "chat.completion.chunk", created: 1, model: "m", choices: [{ index: 0, delta, finish_reason: finish }], ...more })}\n\n`;
const counts = (usage: unknown) =>
  `data: ${JSON.stringify({ id: "c1", model: "m", choices: [], usage })}\n\n`;
const HI = chunk({ role: "assistant", content: "Hi" });
const STOP = chunk({}, "stop");
const DONE = "data: [DONE]\n\n";
const GOOD = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 };

type Outcome = { fault: Fault } | { text: string; usage: object; finish: string };

const outcome = (run: () => Outcome): Outcome => {
  try {
    return run();
  } catch (error) {
    const fault = getFault(error);
    if (!fault) throw error;
    return { fault };
  }
};
const translated = (stream: string): Outcome =>
  outcome(() => {
    const { blocks, usage, finish } = collectResponse(
      decode(client!, [Buffer.from(stream)], createCallContext({ stream: true })),
    );
    return {
      text: blocks.map((b) => ("text" in b ? b.text : "")).join(""),
      usage,
      finish: finish.reason,
    };
  });
const passthrough = (stream: string): Outcome =>
  outcome(() => {
    const body = { stream_options: { include_usage: true } };
    const { bytes, usage, finish } = runRelay(
      client!,
      [Buffer.from(stream)],
      createResponseContext({ stream: true, body }),
    );
    expect(bytes.toString().endsWith(DONE)).toBe(true);
    const { blocks } = collectResponse(
      decode(client!, [bytes], createCallContext({ stream: true })),
    );
    return {
      text: blocks.map((b) => ("text" in b ? b.text : "")).join(""),
      usage,
      finish: finish!,
    };
  });

const errors: [name: string, stream: string, fault: Partial<Fault>][] = [
  ["nothing at all", "", { kind: "upstream", code: "truncated" }],
  ["only comments", ": wait\n\n: wait\n\n", { kind: "upstream", code: "truncated" }],
  ["no finish", HI, { kind: "upstream", code: "truncated" }],
  ["[DONE] without a finish", HI + DONE, { kind: "upstream", code: "truncated" }],
  [
    "one malformed line among good ones",
    HI + 'data: {"id":"c1","choi\n\n' + STOP + DONE,
    { code: "malformed_answer" },
  ],
  [
    "words where JSON should be",
    HI + "data: overloaded, sorry\n\n" + STOP + DONE,
    { code: "malformed_answer" },
  ],
  ["bad UTF-8", "data: \udcff\n\n", { code: "malformed_answer" }],
  ["a page", "<html><body>502</body></html>", { code: "malformed_answer" }],
  [
    "an error object inside 200",
    HI + 'data: {"error":{"message":"boom","type":"server_error","code":null}}\n\n',
    { kind: "upstream", message: "boom" },
  ],
  [
    "an error string inside 200",
    HI + 'data: {"error":"boom"}\n\n',
    { kind: "upstream", message: "boom" },
  ],
  [
    "an error by its event name",
    HI + 'event: error\ndata: {"message":"boom"}\n\n',
    { kind: "upstream", message: "boom" },
  ],
  [
    "vLLM's error",
    HI + 'data: {"object":"error","message":"boom","type":"x","code":500}\n\n',
    { kind: "upstream", message: "boom" },
  ],
  [
    "OpenRouter's error with a finish",
    HI +
      chunk({ content: "" }, "error", { error: { code: 502, message: "Provider disconnected" } }) +
      DONE,
    { message: "Provider disconnected" },
  ],
  [
    "a rate limit in the middle",
    HI + 'data: {"error":{"code":429,"message":"slow down"}}\n\n',
    { kind: "rate_limited" },
  ],
  [
    "prose in the middle",
    HI + 'data: {"error":{"message":"The server is overloaded","type":"server_error"}}\n\n',
    { kind: "upstream" },
  ],
  ["a finish that is a failure", HI + chunk({}, "error") + DONE, { code: "upstream_failed" }],
  [
    "out of resources",
    HI + chunk({}, "insufficient_system_resource") + DONE,
    { kind: "overloaded" },
  ],
  [
    "a JSON error in place of a stream",
    '{"error":{"message":"nope","code":"context_length_exceeded"}}',
    { kind: "context_length" },
  ],
  [
    "MiniMax's error inside 200",
    '{"base_resp":{"status_code":1008,"status_msg":"insufficient balance"},"choices":null}',
    { kind: "upstream_quota" },
  ],
];

describe("an error, the same in both modes", () => {
  test.each(errors)("%s", (_, stream, fault) => {
    expect(translated(stream)).toMatchObject({ fault });
    expect(passthrough(stream)).toMatchObject({ fault });
  });

  test("a line of 50 MB", () => {
    const line = `${HI}data: {"x":"${"a".repeat(50 * 1024 * 1024)}"}\n\n`;
    expect(translated(line)).toMatchObject({ fault: { code: "event_too_large" } });
    expect(passthrough(line)).toMatchObject({ fault: { code: "event_too_large" } });
  });
});

const answers: [name: string, stream: string, usage: object][] = [
  ["two [DONE]", HI + STOP + counts(GOOD) + DONE + DONE, { input: 10, output: 5 }],
  [
    "more after [DONE]",
    HI + STOP + counts(GOOD) + DONE + chunk({ content: "!" }) + "data: {bad\n\n",
    { input: 10, output: 5 },
  ],
  ["no [DONE]", HI + STOP + counts(GOOD), { input: 10, output: 5 }],
  ["finish twice", HI + STOP + STOP + DONE, {}],
  [
    "finish before the last words",
    chunk({ content: "H" }, "stop") + chunk({ content: "i" }, "stop") + DONE,
    {},
  ],
  [
    "usage twice: the last one holds",
    HI + counts({ ...GOOD, completion_tokens: 1, total_tokens: 11 }) + STOP + counts(GOOD) + DONE,
    { input: 10, output: 5 },
  ],
  ["usage null", HI + STOP + counts(null) + DONE, {}],
  ["usage negative", HI + STOP + counts({ ...GOOD, completion_tokens: -5 }) + DONE, {}],
  ["usage absurd", HI + STOP + counts({ ...GOOD, prompt_tokens: 1e300 }) + DONE, {}],
  ["usage in fractions", HI + STOP + counts({ ...GOOD, prompt_tokens: 1.5 }) + DONE, {}],
  ["usage in words", HI + STOP + counts({ ...GOOD, prompt_tokens: "many" }) + DONE, {}],
  [
    "an empty list of calls",
    HI + chunk({ tool_calls: [] }) + chunk({ tool_calls: null }) + STOP + DONE,
    {},
  ],
  ["odd fields and lines", `id: 1\nretry: 5\n${HI}${STOP.replace("data: ", "data:")}${DONE}`, {}],
  [
    "data over several lines",
    HI +
      'data: {"id":"c1","model":"m",\ndata: "choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n' +
      DONE,
    {},
  ],
  [
    "a whole answer in place of a stream",
    JSON.stringify({
      id: "c1",
      model: "m",
      choices: [{ index: 0, message: { role: "assistant", content: "Hi" }, finish_reason: "stop" }],
      usage: GOOD,
    }),
    { input: 10, output: 5 },
  ],
];

describe("a valid response, the same in both modes", () => {
  test.each(answers)("%s", (_, stream, usage) => {
    expect(translated(stream)).toEqual({ text: "Hi", usage, finish: "stop" });
    expect(passthrough(stream)).toEqual({ text: "Hi", usage, finish: "stop" });
  });
});

describe("non-streaming responses", () => {
  const whole = (body: string) =>
    outcome(() => {
      const { blocks, usage, finish } = collectResponse(
        decodeWhole(client!, Buffer.from(body), createCallContext()),
      );
      return {
        text: blocks.map((b) => ("text" in b ? b.text : "")).join(""),
        usage,
        finish: finish.reason,
      };
    });
  const relayed = (body: string) =>
    outcome(() => {
      const got = runRelay(client!, [Buffer.from(body)], createResponseContext({ body: {} }));
      return { text: got.bytes.toString(), usage: got.usage, finish: got.finish! };
    });

  test.each([
    ["an error inside 200", '{"error":{"message":"boom"}}', { kind: "upstream", message: "boom" }],
    ["not JSON", "oops", { code: "malformed_answer" }],
    ["cut off", '{"id":"c1","choices":[{"mess', { code: "malformed_answer" }],
    ["no choices", '{"id":"c1","choices":[]}', { code: "truncated" }],
    [
      "no finish",
      '{"id":"c1","choices":[{"index":0,"message":{"content":"x"},"finish_reason":null}]}',
      { code: "truncated" },
    ],
    ["an empty body", "", { code: "malformed_answer" }],
  ])("%s is an error", (_, body, fault) => {
    expect(whole(body)).toMatchObject({ fault });
    expect(relayed(body)).toMatchObject({ fault });
  });
});
