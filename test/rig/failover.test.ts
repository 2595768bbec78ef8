import { expect, it } from "vitest";
import { failover } from "./failover.ts";

it("a provider that is killed, one that is slow and one that is limited: no client sees it", async () => {
  const { wrong, counts } = await failover({ seconds: 20, rate: 40 });
  // How long they wait is judged by the long form, on a machine that runs nothing else.
  const slow = (line: string) => line.includes("for its first content");
  expect(
    wrong.filter((line) => !slow(line)),
    JSON.stringify(counts),
  ).toEqual([]);
});
