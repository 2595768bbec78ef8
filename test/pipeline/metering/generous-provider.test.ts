// The law of hard budgets: an honest provider that reads a money field as generously as any backend does never bills more than was
// held. For every operation and protocol: names, places and forms of such fields.
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { road, ROADS } from "../../rig/money/generous-case.ts";

describe("a hard budget reserves enough", () => {
  it.each(ROADS)("%s, from %s to %s: no spelling bills more", async (...way) => {
    await using one = await road(way);
    await fc.assert(
      fc.asyncProperty(fc.nat(), async (seed) => {
        expect(await one.try(seed)).toBeUndefined();
      }),
      { numRuns: 25 },
    );
    // The law is about requests that leave. Many are refused, so more are drawn until enough have left.
    for (let seed = 0; seed < 500 && one.counts.left <= 3; seed++)
      expect(await one.try(seed)).toBeUndefined();
    expect(one.counts.left, `of ${one.counts.asked}`).toBeGreaterThan(3);
  });
});
