// A chunk that differs from another in its words alone is not parsed. A decoder that parses each of them must come to the same events.
import * as fc from "fast-check";
import { expect, test, vi } from "vitest";
import { getFault } from "../../../src/model/error.ts";
import { chatCompletions } from "../../../src/protocols/chat-completions/index.ts";
import { createCallContext } from "../../../src/testing/index.ts";

const { client } = chatCompletions();

function heard(texts: readonly string[]): unknown[] {
  const events: unknown[] = [];
  const of = createCallContext({ stream: true });
  const decoder = client!.createDecoder((event) => void events.push(event), of, {});
  try {
    for (const text of texts) decoder.push(Buffer.from(`data: ${text}\n\n`));
    decoder.end();
  } catch (thrown) {
    const fault = getFault(thrown);
    if (!fault) throw thrown;
    events.push(fault);
  }
  return events;
}

/** Blanks before it, as many as before no other: so it is like none. */
const unlike = (text: string, i: number): string =>
  text.startsWith("{") ? " ".repeat(i + 1) + text : text;

const chunk = (delta: string, more = "", rest = "") =>
  `{"id":"a","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{${delta}}${more}}]${rest}}`;

const SHAPES: readonly ((words: string) => string)[] = [
  (words) => chunk(`"content":"${words}"`, ',"finish_reason":null'),
  (words) => chunk(`"role":"assistant","content": "${words}"`, ',"logprobs":null'),
  (words) => chunk(`"content":"${words}","reasoning_content":null`, "", ',"usage":null'),
  (words) => chunk(`"content":"${words}"`, ',"finish_reason":"stop"'),
  (words) =>
    chunk(`"content":"${words}"`, "", ',"usage":{"prompt_tokens":1,"completion_tokens":2}'),
  (words) => chunk(`"content":"${words}"`, ',"logprobs":{"content":[{"token":"a"}]}'),
  (words) => chunk(`"content":"${words}"`, ',"logprobs":{"refusal":[{"token":"a"}]}'),
  (words) => chunk(`"content":"${words}","audio":{"id":"s","data":"aa"}`),
  (words) =>
    chunk(`"content":"${words}","reasoning_details":[{"type":"reasoning.text","text":"b"}]`),
  (words) =>
    chunk(`"content":"${words}","tool_calls":[{"index":0,"id":"c","function":{"name":"f"}}]`),
  (words) => chunk(`"reasoning_content":"${words}"`),
  (words) => chunk(`"content":"${words}","content":"twice"`),
  (words) => chunk(`"content":"${words}","cont\\u0065nt":"hidden"`),
  (words) => chunk(`"content":[{"type":"text","text":"${words}"}]`),
  (words) => chunk(`"content":null,"refusal":"${words}"`),
  (words) => `{"choices":[{"index":1,"delta":{"content":"${words}"}}]}`,
  (words) => `{"choices":[{"delta":{"content":"${words}"}},{"index":1,"delta":{"role":"a"}}]}`,
  (words) => `{"error":{"message":"${words}","type":"server_error"}}`,
  () => chunk('"content":"', ',"finish_reason":null'),
  () => "[DONE]",
];

/** As it stands between the quotes; some of it may not. */
const words = fc.oneof(
  fc.constantFrom("a", "a", " b", "content", "", "é", "\u2028"),
  fc.string({ maxLength: 6 }).map((text) => JSON.stringify(text).slice(1, -1)),
  fc.constantFrom('","refusal":"no', '"}}],"x":[{"y":{"z":"', "\\n", "\\", "\t", "\u0001", '"'),
);
const shape = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom(...SHAPES.slice(0, 3)) },
  { weight: 1, arbitrary: fc.constantFrom(...SHAPES) },
);
const run = fc
  .record({ shape, said: fc.array(words, { minLength: 1, maxLength: 5 }) })
  .map(({ shape, said }) => said.map(shape));

test("a chunk that is like another comes to what it would come to alone", () => {
  fc.assert(
    fc.property(fc.array(run, { minLength: 1, maxLength: 6 }), (runs) => {
      const texts = runs.flat();
      expect(heard(texts)).toEqual(heard(texts.map(unlike)));
    }),
    { numRuns: 1_500 },
  );
});

test("chunks that differ in their words are parsed no more than once", () => {
  const said = Array.from({ length: 50 }, (_, i) => `word ${i}`);
  const parse = vi.spyOn(JSON, "parse");
  const events = heard([...said.map(SHAPES[0]!), chunk("", ',"finish_reason":"stop"')]);
  expect(parse.mock.calls.length).toBeLessThan(5);
  parse.mockRestore();
  expect(events.filter((event) => (event as { type: string }).type === "delta")).toEqual(
    said.map((text) => ({ type: "delta", index: 0, text })),
  );
});
