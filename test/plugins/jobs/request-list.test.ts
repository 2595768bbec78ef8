// Inputs of batches, split while they arrive: the requests are those of the parsed body, however the
// body is split.
import fc from "fast-check";
import { expect, it } from "vitest";
import { getFault } from "../../../src/model/error.ts";
import {
  findJsonError,
  memberText,
  splitLines,
} from "../../../plugins/frontends/jobs/line-text.ts";
import { splitRequestList } from "../../../plugins/frontends/jobs/routes/request-list.ts";
import { trialCount } from "../../kit/law-effort.ts";

async function* split(text: string, sizes: readonly number[]): AsyncGenerator<Buffer, void> {
  const raw = Buffer.from(text);
  for (let at = 0, i = 0; at < raw.length; i++) {
    const size = sizes.length === 0 ? raw.length : sizes[i % sizes.length]!;
    yield raw.subarray(at, at + size);
    at += size;
  }
}

async function requestsOf(text: string, sizes: readonly number[] = []): Promise<unknown[]> {
  const found: unknown[] = [];
  for await (const { bytes } of splitRequestList(split(text, sizes), "requests"))
    found.push(JSON.parse(bytes.toString()));
  return found;
}

const sizes = fc.array(fc.integer({ min: 1, max: 9 }), { maxLength: 4 });
const spaces = fc.constantFrom(undefined, 1, "\t", "\n ");

it("the requests are the elements of the list in the body", () =>
  fc.assert(
    fc.asyncProperty(
      fc.array(fc.jsonValue({ maxDepth: 3 }), { maxLength: 6 }),
      fc.dictionary(fc.constantFrom("a", "request", '"', "x]"), fc.jsonValue({ maxDepth: 2 })),
      spaces,
      sizes,
      async (requests, others, space, pieces) => {
        const text = JSON.stringify(
          { ...others, requests, last: [1, { requests: [2] }] },
          null,
          space,
        );
        expect(await requestsOf(text, pieces)).toEqual(JSON.parse(JSON.stringify(requests)));
      },
    ),
    { numRuns: trialCount(300) },
  ));

it.each([
  "",
  "[]",
  "{}",
  '{"requests":{}}',
  '{"requests":[1',
  '{"requests":[1}',
  '{"requests":[1,]}',
  '{"requests":[,1]}',
  '{"requests":[1]',
  '{"requests":[1]} x',
  '{"requests":[1],}',
  '{"nested":{"requests":[1]}}',
])("%s is rejected", async (text) => {
  for (const pieces of [[], [1]])
    await expect(requestsOf(text, pieces)).rejects.toSatisfy(
      (error) => error instanceof SyntaxError || getFault(error)?.kind === "invalid",
    );
});

it("a request has the line and the column at which it begins", async () => {
  const found: unknown[] = [];
  const text = '{"requests": [\n  {"a":1},\n{"b":\n2} , 3]}';
  for await (const { line, column } of splitRequestList(split(text, [3]), "requests"))
    found.push([line, column]);
  expect(found).toEqual([
    [2, 3],
    [3, 1],
    [4, 6],
  ]);
});

it("the text of a member is found as it was written", () =>
  fc.assert(
    fc.property(
      fc.dictionary(fc.string({ maxLength: 4 }), fc.jsonValue({ maxDepth: 3 }), { maxKeys: 5 }),
      spaces,
      (object, space) => {
        const text = Buffer.from(JSON.stringify(object, null, space));
        for (const [name, value] of Object.entries(object))
          expect(JSON.parse(memberText(text, name)!.toString())).toEqual(
            JSON.parse(JSON.stringify(value)),
          );
        expect(memberText(text, "absent")).toBe(undefined);
      },
    ),
    { numRuns: trialCount(300) },
  ));

it("numbers that JavaScript cannot represent are not changed", () => {
  const text = '{"custom_id":"a","body":{"seed": 12345678901234567890, "x":1e400}}';
  expect(memberText(Buffer.from(text), "body")!.toString()).toBe(
    '{"seed": 12345678901234567890, "x":1e400}',
  );
});

it("lines are numbered as in the file, and blank ones are left out", async () => {
  for (const pieces of [[], [1], [2, 3]]) {
    const found: unknown[] = [];
    for await (const { number, bytes } of splitLines(split("a\n\n b \r\n\r\nc", pieces)))
      found.push([number, bytes.toString().trim()]);
    expect(found).toEqual([
      [1, "a"],
      [3, "b"],
      [5, "c"],
    ]);
  }
});

it.each([
  ['{"a": oops}', 6],
  ['{"a":1', 6],
  ['{"a":1,}', 7],
  ["[1 2]", 3],
  ['{"a" 1}', 5],
  ["{} x", 3],
  ['["a\\x"]', 1],
  ["", 0],
  ["]", 0],
])("%s is not JSON from character %i on", (text, position) => {
  expect(() => JSON.parse(text) as unknown).toThrow();
  expect(findJsonError(text)).toBe(position);
});

it("valid JSON has no error before its end", () =>
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 3 }), spaces, (value, space) => {
      const text = JSON.stringify(value, null, space);
      expect(findJsonError(text)).toBe(text.length);
    }),
    { numRuns: trialCount(200) },
  ));

it("an error in a long line is looked for at its beginning only", () => {
  expect(findJsonError(`{"a": oops${"x".repeat(10_000_000)}`)).toBe(6);
  for (const text of ['{"a":"x', "[", "[1,,", " "])
    expect(findJsonError(text + text.at(-1)!.repeat(10_000_000))).toBeOneOf([undefined, 3]);
});
