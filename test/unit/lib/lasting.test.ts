import fc from "fast-check";
import { expect, it } from "vitest";
import {
  unpooledSlice,
  unpooledConcat,
  unpooledFromText,
} from "../../../src/lib/unpooled-buffer.ts";
import { codePoint } from "../../kit/code-points.ts";

it("no buffer overlaps another, whatever their sizes", () => {
  fc.assert(
    fc.property(
      fc.array(fc.string({ maxLength: 3_000, unit: codePoint }), { maxLength: 60 }),
      (texts) => {
        const made = texts.map((text, i) =>
          i % 2 ? unpooledFromText(text) : unpooledConcat([Buffer.from(text), Buffer.from("|")]),
        );
        for (const [i, bytes] of made.entries())
          expect(bytes.toString()).toBe(Buffer.from(texts[i]! + (i % 2 ? "" : "|")).toString());
      },
    ),
  );
});

it("retained buffers keep little more than their own bytes", () => {
  for (let i = 0; i < 10_000; i++)
    expect(unpooledFromText("x".repeat(i % 4_000)).buffer.byteLength).toBeLessThanOrEqual(8 * 1024);
  fc.assert(
    fc.property(fc.nat(100_000), fc.nat(100_000), fc.nat(100_000), (size, a, b) => {
      const [from, to] = [Math.min(a, b, size), Math.min(Math.max(a, b), size)];
      const whole = Buffer.alloc(size, "tollgate");
      const part = unpooledSlice(whole, from, to);
      expect(part.equals(whole.subarray(from, to))).toBe(true);
      expect(part.buffer.byteLength).toBeLessThanOrEqual(Math.max(2 * part.length, 8 * 1024));
    }),
  );
});
