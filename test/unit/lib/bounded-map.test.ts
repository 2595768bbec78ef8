import * as fc from "fast-check";
import { expect, it } from "vitest";
import { BoundedMap } from "../../../src/lib/bounded-map.ts";

it("holds the newest entries up to its size, each with its last value", () => {
  const step = fc.oneof(
    fc.record({ set: fc.nat(12), value: fc.nat() }),
    fc.record({ drop: fc.nat(12) }),
  );
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 8 }), fc.array(step), (most, steps) => {
      const map = new BoundedMap<number, number>(most);
      let model: (readonly [number, number])[] = [];
      for (const each of steps) {
        const key = "set" in each ? each.set : each.drop;
        model = model.filter(([known]) => known !== key);
        if ("set" in each) {
          map.set(key, each.value);
          model = [...model, [key, each.value] as const].slice(-most);
        } else map.delete(key);
        expect(map.size).toBe(model.length);
        const known = new Map(model);
        for (let k = 0; k <= 12; k++) expect(map.get(k)).toBe(known.get(k));
      }
      map.clear();
      expect(map.size).toBe(0);
    }),
  );
});
