import fc from "fast-check";
import { expect, it } from "vitest";
import { matchesGlob } from "../../../src/lib/glob.ts";
import { trialCount } from "../../kit/law-effort.ts";

const word = fc.string({ unit: fc.constantFrom("a", "b", "/"), maxLength: 6 });
const pattern = fc.string({ unit: fc.constantFrom("a", "b", "*"), maxLength: 8 });

it("a pattern matches the same names as the equivalent regular expression, with any number of stars", () => {
  fc.assert(
    fc.property(pattern, word, (glob, text) => {
      const meant = new RegExp(`^${glob.replaceAll("*", ".*")}$`);
      expect(matchesGlob(glob, text)).toBe(meant.test(text));
    }),
    { numRuns: trialCount(2_000) },
  );
});

it.each([
  ["*seedream*", "seedream-5-0-lite", true],
  ["*seedream*", "doubao-seedream-4-0", true],
  ["*flux*", "black-forest-labs/flux-pro", true],
  ["*flux*", "flu", false],
  ["a*b*a", "aba", true],
  ["ab*ba", "aba", false],
])("%s and %s", (glob, text, expected) => expect(matchesGlob(glob, text)).toBe(expected));
