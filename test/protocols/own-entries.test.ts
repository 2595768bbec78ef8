import fc from "fast-check";
import { expect, it } from "vitest";
import { ownEntry } from "../../src/protocols/json-values.ts";
import { trialCount } from "../kit/law-effort.ts";

it("finds own properties of a table, and no inherited name", () => {
  const inherited = Object.getOwnPropertyNames(Object.prototype);
  expect(inherited).toContain("__proto__");
  fc.assert(
    fc.property(
      fc.dictionary(fc.string(), fc.integer()),
      fc.oneof(fc.constantFrom(...inherited), fc.string(), fc.anything()),
      (table, word) => {
        const entry = Object.entries(table).find(([name]) => name === word);
        expect(ownEntry(table, word)).toBe(entry?.[1]);
      },
    ),
    { numRuns: trialCount(2_000), examples: inherited.map((name) => [{ a: 1 }, name]) as never },
  );
});
