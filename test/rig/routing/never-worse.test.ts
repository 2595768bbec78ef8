import { expect, it } from "vitest";
import { judge, lineOf, played, ROWS, type RowResult } from "./never-worse.ts";
import { NIGHTLY } from "../../kit/law-effort.ts";

// All of them mostly wait, so they run in parallel.
it("a provider that fails partially, in bursts, or for one key: no request has a worse result through the gateway", async () => {
  const results = await played({ seconds: NIGHTLY ? 10 : 5, seed: 7, rows: ROWS });
  expect(results.flatMap(judge), results.map(lineOf).join("\n")).toEqual([]);
});

it("the judge finds planted errors", () => {
  const share = (good: number, refused = 0) => ({ asked: 100, good, refused });
  const fine: RowResult = {
    row: ROWS[0]!,
    direct: share(50),
    through: share(52),
    calls: 108,
    requests: 100,
    processes: 1,
  };
  expect(judge(fine)).toEqual([]);
  expect(judge({ ...fine, through: share(18) })).toHaveLength(1);
  expect(judge({ ...fine, through: share(52, 3) })).toHaveLength(1);
  expect(judge({ ...fine, calls: 130 })).toHaveLength(1);
});
