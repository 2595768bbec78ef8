import fc from "fast-check";
import { expect, it } from "vitest";
import { grounding, SentText } from "../../../src/protocols/gemini/server/content.ts";

const words = fc.string({ unit: fc.constantFrom("a", " ", "é", "語", "😀", "\n"), maxLength: 60 });

it("a position is in bytes, wherever the text was split", () => {
  fc.assert(
    fc.property(words, fc.array(fc.nat(130)), fc.array(fc.nat(70)), (text, cuts, places) => {
      const passed = new SentText();
      // Also between the two halves of a surrogate pair.
      const ends = [...cuts.map((at) => at % (text.length + 1)), text.length].toSorted(
        (a, b) => a - b,
      );
      let from = 0;
      for (const to of ends) {
        passed.add(text.slice(from, to));
        from = to;
      }
      const letters = [...text];
      for (const [place, bytes] of passed.bytesAt(places))
        expect(bytes).toBe(Buffer.byteLength(letters.slice(0, place).join("")));
      expect(passed.bytesAt(places).size).toBe(new Set(places).size);
    }),
  );
});

it("without web citations nothing is reported", () => {
  expect(grounding(new SentText(), [{ type: "char_location" }])).toBeUndefined();
});
