// Results of the admin API's Idempotency-Keys: each principal has its own space, and none outlasts
// its time.
import { expect, it } from "vitest";
import { IdempotencyCache } from "../../../src/admin/http/idempotency-cache.ts";
import { installTestClock } from "../../kit/clock.ts";

/** A command table, and how often a command of it ran. */
function table() {
  const made = new IdempotencyCache();
  const ran: string[] = [];
  const once = (principal: string, key: string) =>
    made.getOrRun({ principal, key }, ["keys.create"], async () => {
      ran.push(`${principal} ${key}`);
      return { secret: key };
    });
  return { ran, once };
}

it("no principal evicts a result of another one", async () => {
  const { ran, once } = table();
  const first = await once("alice", "one");
  for (let i = 0; i < 5_000; i++) await once("mallory", `k${i}`);
  expect(await once("alice", "one")).toBe(first);
  expect(ran.filter((one) => one.startsWith("alice"))).toEqual(["alice one"]);
});

it("a principal's own results are limited, and the oldest are evicted first", async () => {
  const { ran, once } = table();
  for (let i = 0; i <= 100; i++) await once("alice", `k${i}`);
  await once("alice", "k100");
  expect(ran).toHaveLength(101);
  await once("alice", "k0");
  expect(ran).toHaveLength(102);
});

it("a result is removed after 10 minutes", async () => {
  const time = installTestClock();
  const { ran, once } = table();
  await once("alice", "one");
  time.skip(9 * 60_000);
  await once("alice", "one");
  expect(ran).toHaveLength(1);
  time.skip(61_000);
  await once("alice", "one");
  expect(ran).toHaveLength(2);
});
