import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { codeFrame, editDistance, joinWords, nearest, plural } from "../../../src/lib/text.ts";

const KEYS = ["listen", "state_dir", "workers", "providers", "models", "frontends", "middleware"];
const word = fc.string({ unit: fc.constantFrom(..."abcdefgh"), maxLength: 12 });

describe("distance", () => {
  it("is a metric without the triangle inequality: zero for equal texts only, symmetric, at most the longer length", () => {
    fc.assert(
      fc.property(word, word, (a, b) => {
        const d = editDistance(a, b);
        expect(d === 0).toBe(a === b);
        expect(d).toBe(editDistance(b, a));
        expect(d).toBeLessThanOrEqual(Math.max(a.length, b.length));
        expect(d).toBeGreaterThanOrEqual(Math.abs(a.length - b.length));
      }),
    );
  });
});

describe("nearest", () => {
  it("corrects one error in a word of five letters or more", () => {
    const slip = fc.tuple(fc.constantFrom(...KEYS), fc.nat(), fc.constantFrom("drop", "swap", "x"));
    fc.assert(
      fc.property(slip, ([key, at, how]) => {
        const i = at % (key.length - 1);
        const [a, b] = [key[i]!, key[i + 1]!];
        const middle = how === "drop" ? b : how === "swap" ? b + a : `x${b}`;
        expect(nearest(key.slice(0, i) + middle + key.slice(i + 2), KEYS)).toBe(key);
      }),
    );
  });
  it.each([
    ["apiKey", ["base_url", "api_key"], "api_key"],
    ["API-KEY", ["api_key"], "api_key"],
    ["completions", ["messages", "chat-completions"], "chat-completions"],
    ["postgresql", ["sqlite", "postgres"], "postgres"],
    ["typo", ["base_url", "region"], undefined],
    ["a", ["b"], undefined],
    ["", ["b"], undefined],
    ["x".repeat(10_000), ["x".repeat(10_000)], undefined],
  ])("%s of %j", (wanted, words, expected) => expect(nearest(wanted, words)).toBe(expected));
});

describe("codeFrame", () => {
  it("marks the right text, for any line", () => {
    const line = fc.string({ unit: fc.constantFrom(..."ab \t:{}"), minLength: 1, maxLength: 30 });
    fc.assert(
      fc.property(
        fc.array(line, { minLength: 1, maxLength: 12 }),
        fc.nat(),
        fc.nat(),
        (lines, n, c) => {
          const row = n % lines.length;
          const column = (c % lines[row]!.length) + 1;
          const frame = codeFrame(lines, { line: row + 1, column, length: 3 }).split("\n");
          expect(frame).toHaveLength(Math.min(3, row + 1) + 1);
          const carets = frame.at(-1)!;
          const from = carets.indexOf("^");
          const gutter = frame.at(-1)!.indexOf("|") + 2;
          expect(from - gutter).toBe(column - 1);
          expect(carets.length - from).toBe(Math.min(3, lines[row]!.length - column + 1));
          expect(frame.at(-2)).toMatch(/^> /);
          expect(frame.at(-2)!.slice(gutter)).toBe(lines[row]!.replaceAll("\t", " ").trimEnd());
        },
      ),
    );
  });
});

it("formatted values", () => {
  expect([0, 1, 2].map((n) => plural(n, "error"))).toEqual(["0 errors", "1 error", "2 errors"]);
  expect([[], ["a"], ["a", "b"], ["a", "b", "c"]].map((w) => joinWords(w))).toEqual([
    "",
    "a",
    "a or b",
    "a, b or c",
  ]);
});
