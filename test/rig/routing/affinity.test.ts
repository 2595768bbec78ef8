import { expect, it } from "vitest";
import { affinity } from "./affinity.ts";

/** With fewer conversations, one credential may have none by chance. */
const SHORT = { conversations: 60, turns: 4, seed: 1 };

it("conversations keep their prompt cache across two workers, and move only because of a cooldown", async () => {
  const { wrong, counts } = await affinity(SHORT);
  expect(wrong, JSON.stringify(counts)).toEqual([]);
});

it.each([
  ["drawn", /of the turns found their prompt/],
  ["apart", /a conversation has moved/],
  ["crowded", /b has 0\.0% of the conversations/],
] as const)("a conversation order that is %s is detected", async (mutant, found) => {
  const { wrong } = await affinity({ ...SHORT, turns: 2, mutant });
  expect(wrong.join("\n")).toMatch(found);
});
