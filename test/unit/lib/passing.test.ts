import fc from "fast-check";
import { it } from "vitest";
import { ProbingMap } from "../../../src/lib/probing-map.ts";

it("contains added and not removed items, for any order of operations", () => {
  // Few names, many of which start their search at one place, and enough of them that the table
  // grows.
  const name = fc.oneof(
    fc.nat(40).map((n) => `same-end-of-sixteen-characters:${n}`.split("").toReversed().join("")),
    fc.nat(1_000).map((n) => `${n}.1`),
    fc.constant(""),
  );
  const step = fc.record({
    name,
    isPut: fc.oneof({ arbitrary: fc.constant(true), weight: 3 }, fc.boolean()),
    value: fc.nat(),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 600, size: "max" }), (steps) => {
      const passing = new ProbingMap<number>();
      const known = new Map<string, number>();
      const takes = (name: string) => passing.remove(name) === known.get(name);
      for (const { name, isPut, value } of steps)
        if (isPut) {
          passing.set(name, value);
          known.set(name, value);
        } else {
          if (!takes(name)) return false;
          known.delete(name);
        }
      const gets = [...known].every(([name, value]) => passing.get(name) === value);
      const all = passing.values().toSorted().join() === [...known.values()].toSorted().join();
      if (!gets || !all || passing.get("never put") !== undefined) return false;
      return passing.size === known.size && [...known.keys()].every(takes) && passing.size === 0;
    }),
  );
});

it("contains items with numbers, also if old ones stay while new ones are replaced", () => {
  fc.assert(
    fc.property(fc.array(fc.boolean(), { maxLength: 2_000, size: "max" }), (stays) => {
      const passing = new ProbingMap<string, number>();
      for (const [n, stay] of stays.entries()) {
        passing.set(n, String(n));
        if (!stay && passing.remove(n) !== String(n)) return false;
      }
      const left = stays.filter(Boolean).length;
      return (
        passing.size === left && stays.every((stay, n) => stay === (passing.get(n) === String(n)))
      );
    }),
  );
});
