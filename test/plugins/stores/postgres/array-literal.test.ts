// Meters are locked in the database's order, whatever they are called.
import fc from "fast-check";
import { expect, it } from "vitest";
import { compareBytes } from "../../../../plugins/stores/postgres/connection/array-literal.ts";
import { trialCount } from "../../../kit/law-effort.ts";

const unit = fc.constantFrom("a", "b", "\u007f", "é", "\ud7ff", "\ue000", "\uffff", "😀", "𐀀");

it("texts are sorted by their bytes", () => {
  const text = fc.string({ unit, maxLength: 6 });
  fc.assert(
    fc.property(text, text, (a, b) => {
      const bytes = Buffer.compare(Buffer.from(a), Buffer.from(b));
      expect(Math.sign(compareBytes(a, b))).toBe(bytes);
    }),
    { numRuns: trialCount(2_000) },
  );
});
