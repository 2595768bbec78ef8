// Commands are stored as sent, whatever their sender changes afterwards.
import * as fc from "fast-check";
import { expect, it } from "vitest";
import { clonePlain } from "../../../../plugins/stores/postgres/writer.ts";

it("a copy is equal, and shares no mutable data", () => {
  const objects = (of: unknown): object[] =>
    typeof of === "object" && of !== null ? [of, ...Object.values(of).flatMap(objects)] : [];
  fc.assert(
    fc.property(
      fc.object({ withBigInt: true, key: fc.oneof(fc.string(), fc.constant("__proto__")) }),
      (of) => {
        const copy = clonePlain(of);
        expect(copy).toEqual(structuredClone(of));
        const own = new Set(objects(of));
        expect(objects(copy).filter((part) => own.has(part))).toEqual([]);
      },
    ),
  );
});
