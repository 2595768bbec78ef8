import { expect, it } from "vitest";
import { judge, storm } from "./retry-storm.ts";

// Both mostly wait, so they run in parallel.
it.concurrent("an upstream that fails every call gets few calls, and is not overloaded when it recovers", async () => {
  const { wrong, counts } = await storm({ calm: 5, storm: 8, after: 14, rate: 40, seed: 7 });
  // The number of early calls depends on the machine, so the long form checks it. Retries of all
  // would be three times as many.
  expect(
    wrong.filter((line) => !line.includes("a herd of")),
    JSON.stringify(counts),
  ).toEqual([]);
  expect(counts["peak"]).toBeLessThan(3 * Math.max(40, Number(counts["steady"])));
});

it.concurrent("a gateway that repeats every failure is detected", async () => {
  const { wrong } = await storm({ calm: 3, storm: 4, after: 4, rate: 30, seed: 7, naive: true });
  expect(wrong.some((one) => one.includes("calls upstream for"))).toBe(true);
});

it("the judge finds each planted error", () => {
  const fine = {
    calm: 3,
    storm: 2,
    rate: 10,
    upstream: [10, 10, 10, 1, 1, 12, 10],
    received: 60,
    asked: 20,
    lost: 0,
  };
  expect(judge(fine)).toEqual([]);
  expect(judge({ ...fine, upstream: [10, 10, 10, 40, 40, 12, 10] })).toHaveLength(2);
  expect(judge({ ...fine, upstream: [10, 10, 10, 16, 16, 12, 10] })).toHaveLength(1);
  expect(judge({ ...fine, upstream: [10, 10, 10, 0, 0, 12, 10] })).toHaveLength(1);
  expect(judge({ ...fine, upstream: [10, 10, 10, 1, 1, 16, 16] })).toHaveLength(1);
  expect(judge({ ...fine, upstream: [10, 10, 10, 1, 1, 1, 1, 1] })).toHaveLength(1);
  expect(judge({ ...fine, lost: 1 })).toHaveLength(1);
});
