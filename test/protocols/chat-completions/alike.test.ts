// Events with known bytes are forwarded without decoding. A decoder that reads each of them, byte
// by byte, must have the same result: the same bytes for the client, the same text, the same end,
// the same fault.
import * as fc from "fast-check";
import { expect, test, vi } from "vitest";
import { getFault } from "../../../src/model/error.ts";
import type { Usage } from "../../../src/model/usage.ts";
import { EventTemplates } from "../../../src/protocols/sse/event-templates.ts";
import { chatCompletions } from "../../../src/protocols/chat-completions/index.ts";
import { createResponseContext } from "../../../src/testing/index.ts";
import { trialCount } from "../../kit/law-effort.ts";
import { codePoint } from "../../kit/code-points.ts";

const { client } = chatCompletions();

/** Everything that a relay reports for these chunks, including its fault. */
function heard(chunks: readonly Buffer[]) {
  const out: Buffer[] = [];
  const said = { words: 0, ids: [] as string[], usage: [] as unknown[], finish: "", fault: "" };
  const relay = client!.createPassthrough!(
    {
      setContentType() {},
      write: (b) => void out.push(Buffer.from(b)),
      reportContent: (bytes = 0) => void (said.words += bytes),
      reportStart: (id) => void said.ids.push(id),
      reportUsage: (seen) => void said.usage.push(seen),
      reportFinish(reason): Usage {
        said.finish = reason;
        return { input: 1, output: 2 };
      },
    },
    createResponseContext({ stream: true, body: {} }),
    {},
  );
  try {
    for (const chunk of chunks) relay.push(Buffer.from(chunk));
    relay.end();
  } catch (thrown) {
    const fault = getFault(thrown);
    if (!fault) throw thrown;
    said.fault = `${fault.code}: ${fault.message}`;
  }
  return { ...said, bytes: Buffer.concat(out).toString("latin1") };
}

/** A client's view: an event's data, with any line ends. */
const read = (bytes: string): unknown[] =>
  bytes
    .replace(/\r\n?/g, "\n")
    .split("\n\n")
    .flatMap((event) => {
      const lines = event.split("\n").filter((line) => line.startsWith("data:"));
      const data = lines.map((line) => line.slice(5)).join("\n");
      try {
        return data === "" ? [] : [JSON.parse(data)];
      } catch {
        return [data.trim()];
      }
    });

const byteByByte = (b: Buffer) => Array.from(b, (_, i) => b.subarray(i, i + 1));

const LF = ["\n\n", "\n\n", "\n\n", "\n\n\n", "\n"];
const CR = ["\n\n", "\n\n", "\r\n\r\n", "\r\n\r\n", "\r\r", "\n\r\n", "\r\n\n"];
/** Inside a string's quotes, as encoded. */
const inside = fc.oneof(
  { weight: 6, arbitrary: fc.string({ maxLength: 12 }).map((s) => JSON.stringify(s).slice(1, -1)) },
  { weight: 2, arbitrary: fc.nat({ max: 300 }).map((n) => "long ".repeat(n)) },
  {
    weight: 1,
    arbitrary: fc.constantFrom("é", "\ufeff", "\\u0022", "\\\\", '\\"}]}\\n\\ndata: {'),
  },
);
/** And characters that are not allowed there. */
const BROKEN = [
  "\\",
  "\n",
  "\n\n",
  "\\\n\n",
  "\\\\\n\n",
  "\t",
  '"',
  '"}',
  '","model":"m2","x":"',
  '"},"finish_reason":"stop"}]}\n\ndata: {"',
];
const broken = fc.constantFrom(...BROKEN);
const kind = fc.constantFrom("content", "reasoning_content", "refusal", "role");
const delta = (words: fc.Arbitrary<string>) =>
  fc
    .tuple(fc.constantFrom("m", "m", "m", "m2"), kind, words, fc.constantFrom("", ',"usage":null'))
    .map(
      ([model, key, said, more]) =>
        `data: {"id":"c","model":"${model}","choices":[{"index":0,"delta":{"${key}":"${said}"},"finish_reason":null}]${more}}`,
    );
const other = fc.constantFrom(
  ": ping",
  "",
  "event: x",
  'data: {"id":"c","model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}',
  'data: {"id":"c","model":"m","choices":[],"usage":{"prompt_tokens":3,"completion_tokens":4,"total_tokens":7}}',
  'data: {"error":{"message":"no","type":"server_error"}}',
  "data: [DONE]",
  'data: {"id":"c","model":"m",\ndata: "choices":[]}',
);
const FIRST =
  'data: {"id":"c","model":"m","choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}]}\n\n';
/** Mostly similar, and mostly learned before. */
const talk = (words: fc.Arbitrary<string>, ends: readonly string[]) =>
  fc
    .tuple(
      fc.constantFrom(": hi\n\n", "\ufeff: hi\n\n"),
      fc.constantFrom("", FIRST.repeat(2)),
      fc.array(
        fc
          .tuple(
            fc.oneof({ weight: 8, arbitrary: delta(words) }, { weight: 1, arbitrary: other }),
            fc.constantFrom(...ends),
          )
          .map((event) => event.join("")),
        { minLength: 1, maxLength: 24 },
      ),
    )
    .map(([before, learned, rest]) => Buffer.from(before + learned + rest.join("")));
const cuts = fc.array(fc.nat({ max: 4000 }), { maxLength: 12 });
function pieces(body: Buffer, at: readonly number[]): Buffer[] {
  const places = [...new Set([0, ...at.map((c) => c % body.length), body.length])];
  const sorted = places.toSorted((a, b) => a - b);
  return sorted.slice(1).map((to, i) => body.subarray(sorted[i], to));
}

test("events with known bytes are forwarded as if they were parsed", () => {
  fc.assert(
    fc.property(
      talk(fc.oneof({ weight: 9, arbitrary: inside }, { weight: 1, arbitrary: broken }), LF),
      cuts,
      (body, at) => {
        const slowly = heard(byteByByte(body));
        expect(heard([body])).toEqual(slowly);
        expect(heard(pieces(body, at))).toEqual(slowly);
      },
    ),
    { numRuns: trialCount(300) },
  );
});

test.each([...BROKEN, "\r\r", "\r\n\r\n", "\n\r"])(
  "a known event that contains %j is unknown",
  (bytes) => {
    for (const before of ["", "x", "long ".repeat(60)]) {
      const odd = FIRST.replace('"a"', `"${before}${bytes}b"`);
      const body = Buffer.from(FIRST.repeat(3) + odd + FIRST);
      expect(heard([body])).toEqual(heard(byteByByte(body)));
    }
  },
);

test("a nested copy of a known event does not match", () => {
  for (const before of [": hi\n", "event: x\n", "data: 1\r", 'data: {"x":"'])
    expect(heard([FIRST.repeat(3), before, FIRST, FIRST].map((s) => Buffer.from(s)))).toEqual(
      heard(byteByByte(Buffer.from(FIRST.repeat(3) + before + FIRST + FIRST))),
    );
});

test("if lines end with CR, the client reads the same", () => {
  fc.assert(
    fc.property(talk(inside, CR), cuts, (body, at) => {
      const slowly = heard(byteByByte(body));
      for (const chunks of [[body], pieces(body, at)]) {
        const got = heard(chunks);
        expect(got.fault).toBe(slowly.fault);
        expect(read(got.bytes)).toEqual(read(slowly.bytes));
      }
    }),
    { numRuns: trialCount(200) },
  );
});

test("a response of known events is counted by its text, whatever it contains", () => {
  const chunk = (text: string) =>
    `data: ${JSON.stringify({ id: "c", model: "m", choices: [{ index: 0, delta: { content: text }, finish_reason: null }] })}\n\n`;
  fc.assert(
    fc.property(fc.array(fc.string({ unit: codePoint }), { minLength: 3 }), (texts) => {
      const got = heard([Buffer.from(chunk("a") + texts.map(chunk).join(""))]);
      const said = Buffer.from(got.bytes, "latin1")
        .toString()
        .split("\n\n")
        .filter((event) => event !== "" && !event.includes("[DONE]"))
        .map((event) => JSON.parse(event.slice(6)));
      expect(said.map(({ model }) => model)).toEqual(said.map(() => "provider/model"));
      expect(said.map(({ choices }) => choices[0].delta.content)).toEqual(["a", ...texts]);
    }),
    { numRuns: trialCount(60) },
  );
});

test("events before a fault in the same chunk reach the client, and their text is counted", () => {
  const chunk =
    'data: {"id":"c","model":"m","choices":[{"index":0,"delta":{"content":"abc"},"finish_reason":null}]}\n\n';
  const got = heard([
    Buffer.from(`${chunk.repeat(5)}data: {"error":{"message":"no","type":"server_error"}}\n\n`),
  ]);
  expect(got.bytes.match(/abc/g)).toHaveLength(5);
  expect(got.words).toBe(15);
  expect(got.fault).toContain("no");
});

/** Each separately, because the last one counts: usage, and finish reason. */
const telling = (finish: string, output: number) =>
  FIRST.replace(
    '"finish_reason":null}]',
    `"finish_reason":${finish}}],"usage":{"prompt_tokens":3,"completion_tokens":${output},"total_tokens":${3 + output}}`,
  );

test.each([
  ["counts", telling("null", 9), telling("null", 4)],
  ["ends", telling('"stop"', 4), telling('"length"', 4)],
])("%s that were sent before are sent again after others", (_, a, b) => {
  const end = FIRST.replace("null", '"stop"');
  const said = (events: readonly string[]) => {
    const { usage, finish } = heard([Buffer.from(events.join("") + "data: [DONE]\n\n")]);
    return { usage: usage.at(-1), finish };
  };
  const first = a.includes('"stop"') ? "" : end;
  expect(said([first, FIRST, a, b, a])).toEqual(said([first, FIRST, a]));
});

/**
 * Text that is encoded as it is. For other text the encoded bytes are counted, which are never
 * fewer.
 */
const plain = fc.oneof(
  fc.string({ maxLength: 8 }).filter((s) => JSON.stringify(s) === `"${s}"`),
  fc.nat({ max: 60 }).map((n) => "long ".repeat(n)),
  fc.constantFrom("", "é", "日本"),
);
const told = fc
  .tuple(
    plain,
    fc.constantFrom("null", "null", '"stop"', '"length"'),
    fc.constantFrom(undefined, 4, 9),
    fc.constantFrom("", "", ',"service_tier":"flex"'),
  )
  .map(([said, finish, output, tier]) =>
    (output === undefined ? FIRST.replace("null", () => finish) : telling(finish, output))
      .replace('"a"', () => JSON.stringify(said))
      .replace(',"choices"', `${tier},"choices"`),
  );

test("without known events, the result is the same", () => {
  const last = ({ usage, ...said }: ReturnType<typeof heard>) => ({ ...said, usage: usage.at(-1) });
  fc.assert(
    fc.property(fc.array(told, { minLength: 1, maxLength: 16 }), cuts, (events, at) => {
      const body = Buffer.from(events.join(""));
      const learn = vi.spyOn(EventTemplates.prototype, "learn").mockImplementation(() => {});
      const slowly = last(heard([body]));
      learn.mockRestore();
      expect(last(heard([body]))).toEqual(slowly);
      expect(last(heard(pieces(body, at)))).toEqual(slowly);
    }),
    { numRuns: trialCount(300) },
  );
});
