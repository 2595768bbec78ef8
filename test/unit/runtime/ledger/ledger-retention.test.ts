import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { LifetimeScope } from "../../../../src/lib/lifetime-scope.ts";
import { fail } from "../../../../src/model/error.ts";
import { startRetention } from "../../../../src/runtime/ledger/ledger-retention.ts";

const HOUR_MS = 3_600_000;

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

it("prunes at the start and hourly, and logs errors unless an operator prunes or the gateway stops", async () => {
  const logged: string[] = [];
  let last: PromiseWithResolvers<never> | undefined;
  const runs = [
    () => fail("conflict", "Ledger pruning is already running.", { code: "prune_under_way" }),
    () => fail("internal", "The disk is full."),
    () => (last = Promise.withResolvers<never>()).promise,
  ];
  const scope = new LifetimeScope();
  startRetention(
    {
      store: { maintenance: { prune: async () => runs.shift()!() } } as never,
      log: { error: ({ err }: { err: Error }) => logged.push(err.message) } as never,
    },
    () => HOUR_MS,
    scope,
  );
  await vi.advanceTimersByTimeAsync(2_000);
  expect([runs.length, logged]).toEqual([2, []]);
  await vi.advanceTimersByTimeAsync(HOUR_MS);
  expect([runs.length, logged]).toEqual([1, ["The disk is full."]]);
  await vi.advanceTimersByTimeAsync(HOUR_MS);
  expect(runs.length).toBe(0);
  const ended = scope[Symbol.asyncDispose]();
  last!.reject(new Error("The store is closed."));
  await ended;
  await vi.advanceTimersByTimeAsync(HOUR_MS);
  expect(logged.length).toBe(1);
});
