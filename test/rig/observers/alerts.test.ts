import { expect, it } from "vitest";
import { type Heard, judge, rig } from "./alerts.ts";

const heard = (...all: readonly number[]): Heard[] =>
  all.map((percent) => ({ id: `of ${percent}`, percent }));

it("each threshold of a budget is reported once, across kills of workers and of the whole gateway", async () => {
  const { wrong, counts } = await rig.run(
    { requests: "200", workers: "2", kills: "3", seed: "3" },
    () => {},
  );
  expect(wrong).toEqual([]);
  expect(counts["heard"]).toBeGreaterThanOrEqual(4);
});

it("a repeated delivery with the same ID counts once", () => {
  expect(judge(heard(50, 80, 80, 95, 100, 50))).toEqual([]);
});

it.each([
  ["a part that is not told", heard(50, 95, 100)],
  [
    "a part that is told anew under another id",
    [...heard(50, 80, 95, 100), { id: "again", percent: 80 }],
  ],
  ["parts that are told out of order", heard(50, 95, 80, 100)],
  ["a part that is none", heard(50, 80, 95, 100, 105)],
  ["nothing at all", []],
] as const)("a mutant is detected: %s", (_, told) => {
  expect(judge(told)).toHaveLength(1);
});
