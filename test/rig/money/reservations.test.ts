import { expect, it } from "vitest";
import { holds, worst } from "./reservations.ts";

it("a hard hold is never below the worst that upstream can make of what left", async () => {
  const { wrong, counts } = await holds({ requests: 600, seed: 7 });
  expect(wrong).toEqual([]);
  expect(Number(counts["left"])).toBeGreaterThan(200);
});

it("and that upstream knows how to make the most of it", () => {
  const plain = worst('{"messages":[],"max_tokens":10}');
  for (const more of ['"n":128', '"best_of":3', '"speed":"fast"', '"models":["dear"]'])
    expect(worst(`{"messages":[],"max_tokens":10,${more}}`), more).toBeGreaterThan(plain * 2n);
});
