// The end of a job is reported once, after what has to follow is stored, whatever its engine writes.
import fc from "fast-check";
import { expect, it } from "vitest";
import { fail } from "../../../../src/model/error.ts";
import type { EndedJob, JobKind } from "../../../../src/plugin/store/job-kind.ts";
import type { JobRecord } from "../../../../src/plugin/store/job.ts";
import {
  jobEndedEvent,
  JobRegistry,
  withJobReports,
} from "../../../../src/runtime/observers/job-reports.ts";
import { createJobStatsReader } from "../../../../src/runtime/health/job-stats.ts";
import { createMemoryJobs } from "../../../../src/store/job-table.ts";
import { trialCount } from "../../../kit/law-effort.ts";

const NOON = Date.UTC(2026, 10, 1, 12);
const kind: JobKind = {
  kind: "batch",
  openStates: ["running", "reading"],
  describe: ({ id, state }) => ({
    id: `batch_${id}`,
    status: state === "completed" ? "completed" : "running",
    costNano: 1_500_000_000n,
    endedAt: state === "completed" ? NOON + 1 : undefined,
    origin: { request: "r1" },
  }),
};
const recordOf = (more: Partial<JobRecord> = {}): JobRecord => ({
  id: "a",
  kind: "batch",
  key: "alice",
  version: 1,
  createdAt: NOON,
  state: "running",
  data: "{}",
  ...more,
});

function reported(beforeEnd: (job: EndedJob) => Promise<void> = async () => {}) {
  const stored = createMemoryJobs();
  const log: string[] = [];
  const registry = new JobRegistry();
  registry.current = {
    kinds: new Map([["batch", kind]]),
    beforeEnd: [
      async (job) => {
        log.push(`before ${job.id} ${(await stored.find(job.record))?.state ?? "none"}`);
        await beforeEnd(job);
      },
    ],
  };
  const jobs = withJobReports(stored, registry, (job) => void log.push(`ended ${job.id}`));
  return { stored, jobs, log, registry };
}

it("an end is stored after its hooks, and is then reported once", async () => {
  const { jobs, log } = reported();
  await jobs.put(recordOf());
  await jobs.put(recordOf({ version: 2, state: "reading" }));
  expect(log).toEqual([]);
  await jobs.put(recordOf({ version: 3, state: "completed" }));
  await jobs.put(recordOf({ version: 4, state: "completed", dueAt: NOON + 9 }));
  expect(log).toEqual(["before batch_a reading", "ended batch_a"]);
});

it("an end that a hook or the store rejects is not reported, and can be repeated", async () => {
  let isFailing = true;
  const { jobs, log, stored } = reported(async () => {
    if (isFailing) fail("unavailable", "not now");
  });
  await jobs.put(recordOf());
  const ended = recordOf({ version: 2, state: "completed" });
  await expect(jobs.put(ended)).rejects.toMatchObject({ message: "not now" });
  expect((await stored.find("a"))?.state).toBe("running");
  isFailing = false;
  await expect(jobs.put({ ...ended, version: 7 })).rejects.toThrow();
  expect(log.filter((line) => line.startsWith("ended"))).toEqual([]);
  await jobs.put(ended);
  expect(log.at(-1)).toBe("ended batch_a");
});

it("law: any sequence of writes reports each ended job once, and no other kind", async () => {
  const write = fc.record({
    id: fc.constantFrom("a", "b"),
    kind: fc.constantFrom("batch", "file"),
    state: fc.constantFrom("running", "reading", "completed"),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(write, { maxLength: 20 }), async (writes) => {
      const { jobs, log, stored } = reported();
      const ended = new Set<string>();
      for (const { id, kind: of, state } of writes) {
        const before = await stored.find(`${of}-${id}`);
        // An engine never opens a job again.
        if (before?.state === "completed" && state !== "completed") continue;
        const version = (before?.version ?? 0) + 1;
        if (before === undefined && state === "completed") continue;
        await jobs.put(recordOf({ id: `${of}-${id}`, kind: of, state, version }));
        if (of === "batch" && state === "completed") ended.add(`ended batch_${of}-${id}`);
      }
      expect(log.filter((line) => line.startsWith("ended")).toSorted()).toEqual(
        [...ended].toSorted(),
      );
    }),
    { numRuns: trialCount(50) },
  );
});

it("the event has the cost in dollars, and the request", () => {
  const job = {
    ...kind.describe(recordOf({ state: "completed" }))!,
    record: "a",
    state: "completed",
    kind: "batch",
  };
  expect(jobEndedEvent({ ...job, key: "alice", createdAt: NOON })).toMatchObject({
    type: "job_ended",
    at: NOON + 1,
    job: "batch_a",
    status: "completed",
    costUsd: "1.5",
    origin: { request: "r1" },
  });
});

it("stats count open jobs, and a query is reused for some seconds", async () => {
  const { jobs, stored, registry } = reported();
  let queries = 0;
  const counted = {
    ...stored,
    count: (kinds: readonly string[]) => (queries++, stored.count(kinds)),
  };
  const read = createJobStatsReader({ jobs: counted, jobRegistry: registry });
  await jobs.put(recordOf({ createdAt: NOON + 2 }));
  await jobs.put(recordOf({ id: "b", state: "reading" }));
  await jobs.put(recordOf({ id: "c", state: "completed" }));
  const stats = [{ kind: "batch", open: 2, oldestAt: NOON }];
  expect([await read(), await read(), queries]).toEqual([stats, stats, 1]);
  const idle = createJobStatsReader({ jobs: counted, jobRegistry: new JobRegistry() });
  expect([await idle(), queries]).toEqual([undefined, 1]);
});
