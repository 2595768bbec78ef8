import { expect, it } from "vitest";
import { affinity } from "./affinity.ts";

it("conversations keep their prompt's cache over two workers, and move only with what rests", async () => {
  const { wrong, counts } = await affinity({ conversations: 30, turns: 5, seed: 1 });
  expect(wrong, JSON.stringify(counts)).toEqual([]);
});
