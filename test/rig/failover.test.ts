import { expect, it } from "vitest";
import { failover } from "./failover.ts";

it("a provider that is killed, one that is slow and one that is limited: no client sees it", async () => {
  const { wrong, counts } = await failover({ seconds: 20, rate: 40 });
  expect(wrong, JSON.stringify(counts)).toEqual([]);
});
