// Passthrough mode: bytes are forwarded, one value changes, and necessary facts are read.
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { chatCompletions } from "../../../src/protocols/chat-completions/index.ts";
import {
  createResponseContext,
  readRecordings,
  runRelay,
  type RelayResult,
} from "../../../src/testing/index.ts";
import { trialCount } from "../../kit/law-effort.ts";

const { client } = chatCompletions();
const folder = (name: string) => new URL(`../../fixtures/recordings/${name}/`, import.meta.url);
const streams = [
  ...readRecordings(folder("chat-completions")),
  ...readRecordings(folder("chat-completions-passthrough")),
].filter(
  (r) => r.status === 200 && String(r.headers["content-type"]).startsWith("text/event-stream"),
);
const asked = { stream_options: { include_usage: true } };

/** A client's view: the data of every event, parsed. */
const datas = (bytes: Buffer): unknown[] =>
  bytes
    .toString()
    .replace(/^\ufeff/, "")
    .split(/\r?\n/)
    .filter((line) => line.startsWith("data:"))
    .map((line) => line.replace(/^data: ?/, ""))
    .map((data) => (data === "[DONE]" ? data : JSON.parse(data)));

const renamed = (all: unknown[]): unknown[] =>
  all.map((d) =>
    typeof d === "object" && d !== null && "model" in d ? { ...d, model: "provider/model" } : d,
  );

/**
 * A report with its own convention is converted to the priced form: counts.test.ts and
 * corrected.test.ts test the result.
 */
const ODD: { readonly [recording: string]: object } = { "gemini-tools": { completion_tokens: 50 } };

describe.each(streams.map((r) => [r.name, r] as const))("%s", (name, recording) => {
  const whole = runRelay(
    client!,
    [recording.body],
    createResponseContext({ stream: true, body: asked }),
  );

  test("everything is forwarded unchanged except for the model's name", () => {
    const want = renamed(datas(recording.body)).map((d) => {
      const { usage } = d as { usage?: object };
      return usage && ODD[name] ? { ...(d as object), usage: { ...usage, ...ODD[name] } } : d;
    });
    if (want.at(-1) !== "[DONE]") want.push("[DONE]");
    expect(datas(whole.bytes)).toEqual(want);
  });

  test("comments are forwarded", () => {
    const comments = (b: Buffer) => b.toString().match(/^:.*$/gm) ?? [];
    expect(comments(whole.bytes)).toEqual(comments(recording.body));
  });

  test("any chunks give the client the same bytes and the host the same facts", () => {
    const said = ({ bytes, ...rest }: RelayResult) => ({
      ...rest,
      bytes: bytes.toString("base64"),
    });
    const pieces = fc.array(fc.nat({ max: recording.body.length }), { maxLength: 20 });
    fc.assert(
      fc.property(pieces, (at) => {
        const places = [...new Set([0, ...at, recording.body.length])].toSorted((a, b) => a - b);
        const chunks = places.slice(1).map((to, i) => recording.body.subarray(places[i], to));
        expect(
          said(runRelay(client!, chunks, createResponseContext({ stream: true, body: asked }))),
        ).toEqual(said(whole));
      }),
      { numRuns: trialCount(30) },
    );
  });

  test("the commit precedes the first byte of content, and the finish precedes the terminal event", () => {
    const before = whole.bytes.subarray(0, whole.firstContentOffset).toString();
    expect(before).not.toMatch(/"(?:content|reasoning_content|reasoning)": ?"[^"]/);
    expect(whole.bytes.subarray(whole.finishOffset).toString()).toBe("data: [DONE]\n\n");
    expect(whole.id, name).toBe(/"id":\s*"([^"]+)"/.exec(recording.body.toString())![1]);
  });
});

test("a client that did not request usage does not see the chunk, and usage is counted nevertheless", () => {
  const { body } = streams.find((r) => r.name === "openai-text")!;
  const got = runRelay(client!, [body], createResponseContext({ stream: true, body: {} }));
  expect(got.usage).toMatchObject({ input: 100, output: 100 });
  expect(
    datas(got.bytes).some(
      (d) =>
        Array.isArray((d as { choices?: [] }).choices) &&
        (d as { choices: [] }).choices.length === 0,
    ),
  ).toBe(false);
  expect(datas(got.bytes).at(-1)).toBe("[DONE]");
});

test("multiple choices are each forwarded completely", () => {
  const { body } = streams.find((r) => r.name === "openai-two-choices")!;
  const got = runRelay(client!, [body], createResponseContext({ stream: true, body: asked }));
  expect(got.bytes.toString()).toContain('"index":1,"delta":{"content":"tails"}');
  expect(got.finish).toBe("stop");
});

test("unchanged events are not copied: one write forwards a whole chunk", () => {
  const out: Buffer[] = [];
  const sink = {
    setContentType() {},
    write: (b: Buffer) => void out.push(b),
    reportContent() {},
    reportStart() {},
    reportUsage() {},
    reportFinish: () => undefined,
  };
  const tap = client!.createPassthrough!(
    sink,
    createResponseContext({ stream: true, body: asked }),
    {},
  );
  const chunk = (content: string) =>
    Buffer.from(
      `data: {"id":"c","model":"m","choices":[{"index":0,"delta":{"content":"${content}"},"finish_reason":null}]}\n\n`,
    );
  tap.push(chunk("a"));
  out.length = 0;
  tap.push(Buffer.concat([chunk("b"), chunk("c"), Buffer.from(": ping\n\n")]));
  expect(out.length).toBe(1);
  const ping = Buffer.from(": ping\n\n");
  tap.push(ping);
  expect(out[1]).toBe(ping);
  expect(tap.isBetweenEvents).toBe(true);
  tap.push(Buffer.from("data: {"));
  expect(tap.isBetweenEvents).toBe(false);
});

test("a failure after the commit ends with an error and no [DONE]", () => {
  const out: Buffer[] = [];
  const sink = {
    setContentType() {},
    write: (b: Buffer) => void out.push(b),
    reportContent() {},
    reportStart() {},
    reportUsage() {},
    reportFinish: () => undefined,
  };
  const tap = client!.createPassthrough!(
    sink,
    createResponseContext({ stream: true, body: asked }),
    {},
  );
  tap.push(Buffer.from('data: {"id":"c","choices":[{"index":0,"delta":{"content":"a"}}]}\n\n'));
  tap.writeFault({ kind: "upstream", message: "gone", code: "upstream_disconnected" });
  expect(datas(Buffer.concat(out)).at(-1)).toEqual({
    error: { message: "gone", type: "server_error", param: null, code: "upstream_disconnected" },
  });
});

test("a non-streaming response keeps every byte except for the model's name", () => {
  for (const { name, body, headers } of readRecordings(folder("chat-completions"))) {
    if (headers["content-type"] !== "application/json" || name.startsWith("error-")) continue;
    const got = runRelay(client!, [body], createResponseContext({ body: {} }));
    const at = /"model":\s*"([^"]+)"/.exec(body.toString())!;
    const want =
      body.toString().slice(0, at.index) +
      at[0].replace(`"${at[1]}"`, '"provider/model"') +
      body.toString().slice(at.index + at[0].length);
    expect(got.bytes.toString()).toBe(want);
  }
});

test("similar events are never mistaken for each other", () => {
  const text = fc.oneof(
    fc.string({ unit: "grapheme" }),
    fc.constantFrom(
      '"},"logprobs":null,"finish_reason":"length"}],"usage":{"prompt_tokens":1,"completion_tokens":1}}\n\n',
      '\\"},"finish_reason":"stop"',
      "\\",
      '"',
      "[DONE]",
    ),
  );
  const word = fc.constantFrom("content", "reasoning_content", "refusal");
  const chunk = fc.record({
    delta: fc.tuple(word, text).map(([key, said]) => ({ [key]: said })),
    finish: fc.constantFrom(null, null, null, null, "length"),
    usage: fc.constantFrom(null, null, null, {
      prompt_tokens: 3,
      completion_tokens: 4,
      total_tokens: 7,
    }),
    padding: fc.option(fc.base64String(), { nil: undefined }),
    indent: fc.constantFrom(0, 0, 0, 1),
  });
  fc.assert(
    fc.property(fc.array(chunk, { minLength: 1, maxLength: 30 }), fc.boolean(), (chunks, first) => {
      const events = chunks.map(({ delta, finish, usage, padding }) => {
        const choices = [{ index: 0, delta, logprobs: null, finish_reason: finish }];
        const rest = { usage, ...(padding !== undefined && { obfuscation: padding }) };
        return first
          ? { id: "c", model: "m", choices, ...rest }
          : { id: "c", choices, ...rest, model: "m" };
      });
      const end = {
        id: "c",
        model: "m",
        choices: [{ index: 0, delta: {}, finish_reason: "stop" }],
      };
      const all = [...events, end];
      const bytes = `${all.map((e, i) => `data: ${JSON.stringify(e, null, chunks[i]?.indent ?? 0).replaceAll(/\n */g, " ")}\n\n`).join("")}data: [DONE]\n\n`;
      const got = runRelay(
        client!,
        [Buffer.from(bytes)],
        createResponseContext({ stream: true, body: asked }),
      );
      expect(datas(got.bytes)).toEqual([...renamed(all), "[DONE]"]);
      const counted = chunks.some((c) => c.usage);
      expect(got.usage).toEqual(counted ? { input: 3, output: 4 } : {});
      expect(got.finish).toBe("stop");
    }),
    { numRuns: trialCount(300) },
  );
});
