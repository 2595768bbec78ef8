// The rule of hard budgets: an honest provider that interprets a cost field as generously as any
// backend never bills more than was reserved. For every operation and protocol: names, positions,
// and forms of such fields.
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { road, ROADS } from "../../rig/money/generous-case.ts";
import { trialCount } from "../../kit/law-effort.ts";

describe("a hard budget reserves enough", () => {
  it.each(ROADS)("%s, from %s to %s: no spelling bills more", async (...way) => {
    await using one = await road(way);
    await fc.assert(
      fc.asyncProperty(fc.nat(), async (seed) => {
        expect(await one.try(seed)).toBeUndefined();
      }),
      { numRuns: trialCount(25) },
    );
    // The rule concerns sent requests. Many are rejected, so requests are drawn until enough were
    // sent.
    for (let seed = 0; seed < 500 && one.counts.left <= 3; seed++)
      expect(await one.try(seed)).toBeUndefined();
    expect(one.counts.left, `of ${one.counts.asked}`).toBeGreaterThan(3);
  });
});
