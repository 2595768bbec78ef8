import { expect, it } from "vitest";
import { holds, worst } from "./reservations.ts";

it("a hard reservation is never below the highest bill that the upstream can charge", async () => {
  const { wrong, counts } = await holds({ requests: 600, seed: 7 });
  expect(wrong).toEqual([]);
  expect(Number(counts["left"])).toBeGreaterThan(200);
});

it("control: the upstream charges the highest possible bill", () => {
  const plain = worst('{"messages":[],"max_tokens":10}');
  for (const more of ['"n":128', '"best_of":3', '"speed":"fast"', '"models":["dear"]'])
    expect(worst(`{"messages":[],"max_tokens":10,${more}}`), more).toBeGreaterThan(plain * 2n);
});
