// Engines of jobs ask a store when their next job is due. On SQLite, this costs nothing while no job
// changes, and the answer is always that of the table.
import fc from "fast-check";
import { expect, it } from "vitest";
import type { JobRecord, JobStore } from "tollgate/plugin";
import { keepDueTimes } from "../../../plugins/stores/sqlite.ts";
import { createMemoryJobs } from "../../../src/store/job-table.ts";

const KINDS = ["batch", "video"];
const created = (id: string, kind: string, dueAt?: number): JobRecord => ({
  id,
  kind,
  key: "k",
  version: 1,
  createdAt: 1,
  state: "open",
  ...(dueAt !== undefined && { dueAt }),
  data: "{}",
});

/** A table that counts reads of times, and answers calls in the order in which they were made. */
function createCountedJobs() {
  const jobs = createMemoryJobs();
  const counted = { reads: 0 };
  let last: Promise<unknown> = Promise.resolve();
  const inOrder =
    <A extends unknown[], R>(method: (...args: A) => Promise<R>) =>
    (...args: A): Promise<R> => {
      const result = last.then(() => method(...args));
      last = result.catch(() => undefined);
      return result;
    };
  const table: JobStore = {
    ...jobs,
    put: inOrder(jobs.put),
    lease: inOrder(jobs.lease),
    delete: inOrder(jobs.delete),
    nextDueAt: inOrder((kinds) => {
      counted.reads++;
      return jobs.nextDueAt(kinds);
    }),
  };
  return { jobs, table, counted };
}

it("an idle engine reads the table once", async () => {
  const { table, counted } = createCountedJobs();
  const kept = keepDueTimes(table);
  await kept.put(created("j1", "batch", 5));
  for (let n = 0; n < 60; n++) expect(await kept.nextDueAt(["batch"])).toBe(5);
  expect(counted.reads).toBe(1);
});

it("the time is that of the table after any changes, also of changes that are still running", () =>
  fc.assert(
    fc.asyncProperty(
      fc.array(
        fc.record({
          what: fc.constantFrom("put", "lease", "delete", "read"),
          kind: fc.constantFrom(...KINDS),
          dueAt: fc.option(fc.nat(20), { nil: undefined }),
          at: fc.nat(20),
          isAwaited: fc.boolean(),
        }),
        { maxLength: 30 },
      ),
      async (steps) => {
        const { jobs, table } = createCountedJobs();
        const kept = keepDueTimes(table);
        const running: Promise<unknown>[] = [];
        for (const [n, { what, kind, dueAt, at, isAwaited }] of steps.entries()) {
          const lease = { at, owner: "o", leaseMs: 3, limit: 1, kinds: [kind] };
          const call =
            what === "put"
              ? kept.put(created(`j${n}`, kind, dueAt))
              : what === "lease"
                ? kept.lease(lease)
                : what === "delete"
                  ? kept.delete(`j${n - 1}`, 1)
                  : kept.nextDueAt([kind]);
          running.push(call.catch(() => undefined));
          if (isAwaited) await Promise.all(running);
        }
        await Promise.all(running);
        for (const kinds of [...KINDS.map((kind) => [kind]), KINDS])
          expect(await kept.nextDueAt(kinds)).toBe(await jobs.nextDueAt(kinds));
      },
    ),
  ));

it("a failed read is repeated", async () => {
  const { table } = createCountedJobs();
  let failures = 1;
  const kept = keepDueTimes({
    ...table,
    nextDueAt: async (kinds) => {
      if (failures-- > 0) throw new Error("The store is unavailable.");
      return table.nextDueAt(kinds);
    },
  });
  await expect(kept.nextDueAt(["batch"])).rejects.toThrow("unavailable");
  expect(await kept.nextDueAt(["batch"])).toBeUndefined();
});
