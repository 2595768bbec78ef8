import fc from "fast-check";
import { expect, it } from "vitest";
import { Pieces } from "../../../src/walk/upstream/pieces.ts";

const sizes = fc.array(
  fc.oneof(fc.integer({ min: 0, max: 50 }), fc.integer({ min: 10_000, max: 400_000 })),
  { minLength: 1, maxLength: 9 },
);

it("whatever a body is made of, its bytes and their order stay", () => {
  fc.assert(
    fc.property(sizes, (all) => {
      const parts = all.map((size, i) => Buffer.alloc(size, i + 1));
      const pieces = new Pieces(parts);
      const whole = Buffer.concat(parts);
      expect(pieces.length).toBe(whole.length);
      expect(Buffer.concat(pieces.list).equals(whole)).toBe(true);
      expect(pieces.whole().equals(whole)).toBe(true);
      expect(pieces.list).toEqual([pieces.whole()]);
    }),
    { numRuns: 50 },
  );
});

it("a small one is one buffer; of a large one only what is small is copied", () => {
  const [head, name, rest] = [Buffer.from('{"model":'), Buffer.from('"m"'), Buffer.alloc(500_000)];
  expect(new Pieces([head, name, rest.subarray(0, 1_000)]).list).toHaveLength(1);
  const { list } = new Pieces([rest, head, name, rest]);
  expect(list.map(({ length }) => length)).toEqual([500_000, 12, 500_000]);
  expect(list[0]).toBe(rest);
  expect(list[2]).toBe(rest);
});
