import fc from "fast-check";
import { expect, it } from "vitest";
import { BodyChunks } from "../../../src/pipeline/upstream/outgoing-request.ts";
import { trialCount } from "../../kit/law-effort.ts";

const sizes = fc.array(
  fc.oneof(fc.integer({ min: 0, max: 50 }), fc.integer({ min: 10_000, max: 400_000 })),
  { minLength: 1, maxLength: 9 },
);

it("the bytes of any body and their order are kept", () => {
  fc.assert(
    fc.property(sizes, (all) => {
      const parts = all.map((size, i) => Buffer.alloc(size, i + 1));
      const pieces = new BodyChunks(parts);
      const whole = Buffer.concat(parts);
      expect(pieces.length).toBe(whole.length);
      expect(Buffer.concat(pieces.chunks).equals(whole)).toBe(true);
      expect(pieces.toBuffer().equals(whole)).toBe(true);
      expect(pieces.chunks).toEqual([pieces.toBuffer()]);
    }),
    { numRuns: trialCount(50) },
  );
});

it("a small body is one buffer; of a large body only small chunks are copied", () => {
  const [head, name, rest] = [Buffer.from('{"model":'), Buffer.from('"m"'), Buffer.alloc(500_000)];
  expect(new BodyChunks([head, name, rest.subarray(0, 1_000)]).chunks).toHaveLength(1);
  const { chunks } = new BodyChunks([rest, head, name, rest]);
  expect(chunks.map(({ length }) => length)).toEqual([500_000, 12, 500_000]);
  expect(chunks[0]).toBe(rest);
  expect(chunks[2]).toBe(rest);
});
