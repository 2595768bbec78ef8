import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { BOUNDS } from "../../../src/lib/bounds.ts";
import { endOfString, scan, Scanner } from "../../../src/lib/json/json-scanner.ts";
import { trialCount } from "../../kit/law-effort.ts";

const MAX_DEPTH = BOUNDS.depth.max;

const flawOf = (text: string) => scan(Buffer.from(text)).flaw?.code;

/** Any JSON object, with any white space and any optional escapes of serializers. */
const object = fc.dictionary(fc.string({ unit: "grapheme" }), fc.jsonValue({ maxDepth: 6 }));

describe("the scanner", () => {
  it("finds the exact bytes of every member, with any white space", () => {
    fc.assert(
      fc.property(object, fc.constantFrom(undefined, 1, "\t"), (value, indent) => {
        const text = JSON.stringify(value, null, indent);
        const b = Buffer.from(text);
        const found = scan(b);
        expect(found.flaw).toBeUndefined();
        if (found.flaw) return;
        expect([...found.spans.keys()].sort()).toEqual(Object.keys(JSON.parse(text)).sort());
        for (const [name, span] of found.spans) {
          expect(JSON.parse(b.toString("utf8", span.from, span.to))).toEqual(
            JSON.parse(text)[name],
          );
          expect(b[span.key]).toBe(34);
        }
      }),
      { numRuns: trialCount(500) },
    );
  });

  it("finds a duplicate key, at any depth and in wide objects", () => {
    fc.assert(
      fc.property(
        fc.uniqueArray(fc.string(), { minLength: 1, maxLength: 60 }),
        fc.nat(),
        fc.nat({ max: 5 }),
        (names, pick, depth) => {
          const twice = names[pick % names.length]!;
          const members = [...names, twice].map((n) => `${JSON.stringify(n)}:1`).join(",");
          const text = `${'{"a":['.repeat(depth)}{${members}}${"]}".repeat(depth)}`;
          expect(flawOf(text)).toBe("duplicate_key");
        },
      ),
    );
  });

  it.each([
    ['{"model":"a","model":"b"}', "duplicate_key"],
    ['{"model":"a","mod\\u0065l":"b"}', "escaped_key"],
    ['{"mod\\u0065l":"b"}', "escaped_key"],
    ['{"x":[{"type":1,"type":2}]}', "duplicate_key"],
    ['{"x":{"caf\\u00e9":1,"café":2}}', "duplicate_key"],
    ['{"x":{"a\\"b":1,"a\\"b":2}}', "duplicate_key"],
    ['{"x":{"a\\/b":1,"a/b":2}}', "duplicate_key"],
    [`{"a":${"[".repeat(MAX_DEPTH)}${"]".repeat(MAX_DEPTH)}}`, "too_deep"],
    ["[1]", "not_an_object"],
    ['"x"', "not_an_object"],
    ["12", "not_an_object"],
  ])("rejects %s", (text, code) => {
    expect(flawOf(text)).toBe(code);
  });

  it.each([
    '{"a":"\\"model\\":","b":{"a":1},"c":[{"a":1},{"a":1}]}',
    '{"caf\\u00e9":1,"x\\ny":2}',
    `{"a":${"[".repeat(MAX_DEPTH - 1)}${"]".repeat(MAX_DEPTH - 1)}}`,
    `{"long":"${"x".repeat(100)}\\\\","b":"${"y".repeat(50)}\\""}`,
    "{}",
  ])("accepts %s", (text) => {
    expect(flawOf(text)).toBeUndefined();
  });
});

it("finds the ends of strings and counts escapes, whatever they contain", () => {
  const naive = (text: string) => {
    let j = 1;
    while (j < text.length && text[j] !== '"') j += text[j] === "\\" ? 2 : 1;
    return Math.min(j, text.length);
  };
  const runs = fc.array(
    fc.tuple(fc.constantFrom("x", "\\", '\\"', "\\\\", '"'), fc.integer({ min: 1, max: 90 })),
    { maxLength: 12 },
  );
  fc.assert(
    fc.property(runs, (all) => {
      const text = `"${all.map(([piece, times]) => piece.repeat(times)).join("")}`;
      const end = naive(text);
      expect(endOfString(Buffer.from(text), 0)).toBe(end);
      const closed = text.slice(0, end) + '"';
      if (end === text.length && /(?:^|[^\\])(?:\\\\)*\\$/.test(text)) return;
      const found = scan(Buffer.from(`{"a":${closed}}`));
      expect(found.flaw === undefined && found.spans.get("a")).toMatchObject({
        from: 5,
        to: 5 + closed.length,
      });
    }),
    { numRuns: trialCount(2000) },
  );
});

it("four numbers of a list are one value, for any formatting and any steps", () => {
  // OpenAI's maximum for one embedding request: 300,000 IDs in as many texts as possible.
  const lists = Array.from({ length: 2_048 }, () => Array<number>(146).fill(40_000));
  const body = { model: "openai/text-embedding-3-small", input: lists };
  for (const text of [JSON.stringify(body), JSON.stringify(body, null, 2)]) {
    const bytes = Buffer.from(text);
    expect(scan(bytes, BOUNDS.jsonValues.max).flaw).toBeUndefined();
    const scanner = new Scanner(bytes, BOUNDS.jsonValues.max);
    let seen;
    while (!(seen = scanner.scanTo(1_000)));
    expect(seen.flaw).toBeUndefined();
  }
  // The object, its list, and its first value; then one for every four.
  const many = (n: number, one: string) => Buffer.from(`{"a":[${Array(n).fill(one).join(", ")}]}`);
  for (const one of ["7", "-0.5", "1e3"]) {
    expect(scan(many(1 + 4 * 7 + 3, one), 10).flaw, one).toBeUndefined();
    expect(scan(many(1 + 4 * 8, one), 10).flaw?.code, one).toBe("too_many_values");
  }
  for (const one of ['"7"', "true", "{}", "null"])
    expect(scan(many(12, one), 10).flaw?.code, one).toBe("too_many_values");
});
