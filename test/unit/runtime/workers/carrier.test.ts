import * as fc from "fast-check";
import { expect, it } from "vitest";
import { createBatchForwarder } from "../../../../src/runtime/workers/batch-forwarder.ts";
import { fail, getFault } from "../../../../src/model/error.ts";
import type { StoreCommand, CommandResult } from "../../../../src/plugin/store/store.ts";
import { reserveCommand } from "../../../../src/testing/store.ts";
import { trialCount } from "../../../kit/law-effort.ts";

/**
 * Returns the attempt's own number. Negative commands are impossible, and `broken` rejects
 * everything.
 */
function recording(options: { broken?: (batch: number) => boolean } = {}) {
  const batches: string[][] = [];
  let inFlight = 0;
  return {
    batches,
    async apply(batch: readonly StoreCommand[]): Promise<readonly CommandResult[]> {
      expect(++inFlight).toBe(1);
      const attempts = batch.map((command) => (command as { attempt: string }).attempt);
      await new Promise((resolve) => setImmediate(resolve));
      inFlight--;
      if (options.broken?.(batches.length)) {
        batches.push([]);
        throw new Error("full");
      }
      if (attempts.some((each) => Number(each) < 0)) fail("invalid", "That cannot be.");
      batches.push(attempts);
      return attempts.map((each) => ({
        ok: false,
        denied: {} as never,
        retryAfterMs: Number(each),
      }));
    },
  };
}

const of = (numbers: readonly number[]) => numbers.map((n) => reserveCommand(String(n)));
const heard = (verdicts: readonly CommandResult[]) =>
  verdicts.map((verdict) => (verdict.ok ? undefined : verdict.retryAfterMs));

it("calls of one turn, or during a write, are sent together and in order; each caller gets its own result", async () => {
  const store = recording();
  const apply = createBatchForwarder(store);
  const ask = (...batches: number[][]) => batches.map((numbers) => apply(of(numbers)));
  const told = ask([1, 2], [3]);
  await new Promise((resolve) => setImmediate(resolve));
  told.push(...ask([4], [5, 6]));
  expect((await Promise.all(told)).map(heard)).toEqual([[1, 2], [3], [4], [5, 6]]);
  expect(store.batches).toEqual([
    ["1", "2", "3"],
    ["4", "5", "6"],
  ]);
});

it("any concurrent calls are sent completely or not at all, once, with the right result", async () => {
  const batch = fc.array(fc.integer({ min: -2, max: 1_000 }), { maxLength: 4 });
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.tuple(batch, fc.integer({ min: 0, max: 3 })), { maxLength: 12 }),
      fc.func(fc.boolean()),
      async (asked, broken) => {
        const store = recording({ broken });
        const apply = createBatchForwarder(store);
        const told = asked.map(async ([numbers, turns]) => {
          for (let i = 0; i < turns; i++) await new Promise((resolve) => setImmediate(resolve));
          return apply(of(numbers)).then(
            (verdicts) => {
              expect(heard(verdicts)).toEqual(numbers);
              return [];
            },
            (error: unknown) => {
              const impossible = getFault(error)?.kind === "invalid";
              // Only the caller gets the error.
              expect(impossible && !numbers.some((n) => n < 0)).toBe(false);
              return numbers;
            },
          );
        });
        const lost = (await Promise.all(told)).flat();
        const done = store.batches.flat().map(Number);
        const all = asked.flatMap(([numbers]) => numbers);
        const sorted = (list: readonly number[]) => list.toSorted((a, b) => a - b);
        expect(sorted([...done, ...lost])).toEqual(sorted(all));
      },
    ),
    { numRuns: trialCount(200) },
  );
});
