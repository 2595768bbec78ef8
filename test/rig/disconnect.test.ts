import { expect, it } from "vitest";
import { disconnect } from "./disconnect.ts";

it("whoever leaves at a random byte lets upstream go, and leaves a row that counts what was sent", async () => {
  const { wrong, counts } = await disconnect({ times: 100, seed: 7, clients: 8 });
  expect(wrong).toEqual([]);
  expect(counts["rows"]).toBe(100);
  expect(counts["cut"]).toBeGreaterThan(50);
});
