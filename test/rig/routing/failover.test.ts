import { expect, it } from "vitest";
import { failover } from "./failover.ts";

const SHORT = { seconds: 20, rate: 40, seed: 7 };

// Each mostly waits, so in parallel they take as long as one.
it.concurrent("a killed, a slow, and a rate-limited provider: no client notices", async () => {
  const { wrong, counts } = await failover(SHORT);
  // The long form checks the waiting times, on an idle machine.
  const slow = (line: string) => line.includes("for its first content");
  expect(
    wrong.filter((line) => !slow(line)),
    JSON.stringify(counts),
  ).toEqual([]);
});

it.concurrent("a gateway that does not report recoveries is detected", async () => {
  const { wrong } = await failover({ ...SHORT, mutant: "unrecovered" });
  expect(wrong).toContain("0 lines say of limited: provider recovered");
});

it.concurrent("a gateway without fallback is detected", async () => {
  const { wrong } = await failover({ ...SHORT, seconds: 6, mutant: "first" });
  expect(wrong.join("\n")).toMatch(/^a client saw/);
});

it.concurrent("a gateway whose circuit breakers stay closed is detected", async () => {
  const { wrong } = await failover({ ...SHORT, seconds: 6, mutant: "tireless" });
  expect(wrong).toContain("0 lines say of killed: provider unavailable");
});
