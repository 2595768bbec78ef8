import fc from "fast-check";
import { expect, it } from "vitest";
import { alone, lastingPiece, lastingText } from "../../../src/lib/lasting.ts";

it("none is written over by another, whatever their sizes", () => {
  fc.assert(
    fc.property(
      fc.array(fc.string({ maxLength: 3_000, unit: "binary" }), { maxLength: 60 }),
      (texts) => {
        const made = texts.map((text, i) =>
          i % 2 ? lastingText(text) : lastingPiece([Buffer.from(text), Buffer.from("|")]),
        );
        for (const [i, bytes] of made.entries())
          expect(bytes.toString()).toBe(Buffer.from(texts[i]! + (i % 2 ? "" : "|")).toString());
      },
    ),
  );
});

it("a few bytes hold a small block, and alone they hold nothing else", () => {
  for (let i = 0; i < 10_000; i++)
    expect(lastingText("x".repeat(i % 4_000)).buffer.byteLength).toBeLessThanOrEqual(8 * 1024);
  expect(alone(Buffer.alloc(100_000).subarray(5, 9)).buffer.byteLength).toBe(4);
});
