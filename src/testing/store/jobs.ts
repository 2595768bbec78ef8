// Checks of jobs: their records, and the reservation that their lines share.
import assert from "node:assert/strict";
import { getFault } from "../../model/error.ts";
import type { JobRecord } from "../../plugin/store/job.ts";
import type { Reserve, Store } from "../../plugin/store/store.ts";
import { wallClock } from "../../lib/time/wall-clock.ts";
import { jobCursor } from "../../plugin/store/job-cursor.ts";
import {
  attemptIds,
  fleetClaim,
  heartbeatCommand,
  listEntriesUntil,
  onAll,
  readLimitUsage,
  reserveNow,
  rowKinds,
  settleNow,
  type FleetLaw,
} from "./fleet.ts";
import {
  applyOne,
  assertInvalid,
  limitClaim,
  NOON,
  readEntries,
  readRemaining,
  reserveCommand,
  SECOND_OWNER,
  settleCommand,
  type Law,
} from "./fixtures.ts";
import { transferAll } from "./maintenance.ts";

const JOB = "job-1.1";
const REQUESTS = { unit: "requests", per: "day", max: 100 } as const;
const MONTH = { per: "month", max: 20_000n } as const;

/** Creates the reserve of a job with ten lines of 400 nano-dollars. */
const reserveJob = (more: Partial<Reserve> & { at?: number } = {}) =>
  reserveCommand(JOB, {
    holdNano: 4_000n,
    claims: [limitClaim({}, 4_000n), limitClaim(MONTH, 4_000n), limitClaim(REQUESTS, 10n)],
    job: { attempt: JOB },
    ...more,
  });

/** Creates the reserve and the settle of a line. */
const line = (n: number, more: Parameters<typeof settleCommand>[1] = {}, at = NOON) =>
  [
    reserveCommand(`line-${n}`, {
      at,
      number: n,
      holdNano: 400n,
      job: { attempt: JOB, take: { nano_usd: 400n, requests: 1n } },
    }),
    settleCommand(`line-${n}`, { at, costNano: 300n, ...more }),
  ] as const;

const settleJob = (more: Parameters<typeof settleCommand>[1] = {}) =>
  settleCommand(JOB, { state: "void", costNano: 0n, usage: {}, ...more });

/** Checks of the money of jobs. */
export const jobLedgerLaws: readonly Law[] = [
  [
    "the lines of a job use its reservation, and its end releases the rest",
    async (store) => {
      if (!store.jobs) return;
      await applyOne(store, reserveJob());
      assert.equal(await readRemaining(store, {}), 6_000n);
      await store.apply([...line(1), ...line(2)]);
      // 2 × 300 used, 3,200 reserved for the other 8 lines.
      assert.equal(await readRemaining(store, {}), 10_000n - 600n - 3_200n);
      assert.equal(await readRemaining(store, REQUESTS), 90n);
      await applyOne(store, settleJob());
      assert.equal(await readRemaining(store, {}), 9_400n);
      assert.equal(await readRemaining(store, REQUESTS), 98n);
      const [total] = await store.sumEntries({ by: ["key"] });
      assert.equal(total?.calls, 2);
      assert.equal(total.costNano, 600n);
      assert.deepEqual(await (store.verify?.() ?? []), []);
    },
  ],
  [
    "repeating a line, before and after the end of its job, changes nothing",
    async (store) => {
      if (!store.jobs) return;
      await applyOne(store, reserveJob());
      await store.apply([...line(1)]);
      await store.apply([...line(1), ...line(1)]);
      assert.equal(await readRemaining(store, {}), 10_000n - 300n - 3_600n);
      await store.apply([settleJob(), ...line(1)]);
      await store.apply([...line(1), reserveJob()]);
      assert.equal(await readRemaining(store, {}), 9_700n);
      assert.equal((await readEntries(store, "line-1")).length, 2);
      await assertInvalid(store.apply([...line(2)]));
      assert.deepEqual(await readEntries(store, "line-2"), []);
    },
  ],
  [
    "the rows of a line name its job",
    async (store) => {
      if (!store.jobs) return;
      await store.apply([reserveJob(), ...line(1), ...line(2), settleJob()]);
      await applyOne(store, reserveCommand("other"));
      const rows = (await store.listEntries({})).items;
      const jobs = rows.map(({ attempt, job }) => [attempt, job]);
      assert.deepEqual(jobs, [
        [JOB, JOB],
        ["line-1", JOB],
        ["line-1", JOB],
        ["line-2", JOB],
        ["line-2", JOB],
        [JOB, JOB],
        ["other", undefined],
      ]);
    },
  ],
  [
    "a line counts in the window in which its job was created",
    async (store) => {
      if (!store.jobs) return;
      const later = Date.UTC(2026, 6, 2);
      await applyOne(store, reserveJob());
      await store.apply([...line(1, {}, later), settleJob({ at: later })]);
      assert.equal(await readRemaining(store, MONTH), 19_700n);
      assert.equal(await readRemaining(store, MONTH, later), 20_000n);
    },
  ],
  [
    "a line that is void returns its amounts to its job, which can send it again",
    async (store) => {
      if (!store.jobs) return;
      await applyOne(store, reserveJob());
      await store.apply([...line(1, { state: "void", costNano: 0n, usage: {} })]);
      // All 4,000 are reserved for the lines. The request was made.
      assert.equal(await readRemaining(store, {}), 6_000n);
      assert.equal(await readRemaining(store, REQUESTS), 90n);
      await applyOne(store, settleJob());
      assert.equal(await readRemaining(store, {}), 10_000n);
      assert.equal(await readRemaining(store, REQUESTS), 99n);
    },
  ],
  [
    "a line is never denied, and takes at most what its job still reserves",
    async (store) => {
      if (!store.jobs) return;
      const claims = [limitClaim({ max: 1_000n }, 1_000n)];
      await applyOne(store, reserveJob({ claims, holdNano: 1_000n }));
      for (const n of [1, 2, 3]) await store.apply([...line(n)]);
      assert.equal(await readRemaining(store, { max: 1_000n }), 100n);
      const [used] = (await store.readLimits?.([{ ...claims[0]! }], NOON)) ?? [];
      assert.equal(used?.reserved ?? 0n, 0n);
      await applyOne(store, settleJob());
      assert.equal(await readRemaining(store, { max: 1_000n }), 100n);
    },
  ],
  [
    "a job is denied as a whole if its lines exceed a limit",
    async (store) => {
      if (!store.jobs) return;
      const denied = await applyOne(store, reserveJob({ claims: [limitClaim({}, 10_001n)] }));
      assert.equal(denied.ok, false);
      assert.deepEqual(await readEntries(store, JOB), []);
      await assertInvalid(store.apply([...line(1)]));
    },
  ],
  [
    "a job counts in calendar windows only, and a line has no claims",
    async (store) => {
      if (!store.jobs) return;
      const rate = limitClaim({ unit: "requests", per: "minute", max: 60 }, 10n);
      await assertInvalid(store.apply([reserveJob({ claims: [rate] })]));
      const slot = limitClaim({ unit: "concurrent", per: "open", max: 4 }, 1n);
      await assertInvalid(store.apply([reserveJob({ claims: [slot] })]));
      await applyOne(store, reserveJob());
      const [reserve] = line(1);
      await assertInvalid(store.apply([{ ...reserve, claims: [limitClaim({}, 1n)] }]));
    },
  ],
  [
    "a job without its results is settled with the cost of all lines that were not read",
    async (store) => {
      if (!store.jobs) return;
      await store.apply([reserveJob(), ...line(1)]);
      await applyOne(
        store,
        settleJob({ state: "estimated", costNano: 3_600n, outcome: "expired" }),
      );
      assert.equal(await readRemaining(store, {}), 10_000n - 300n - 3_600n);
      assert.equal(await readRemaining(store, REQUESTS), 90n);
      assert.deepEqual(await (store.verify?.() ?? []), []);
    },
  ],
  [
    "a job outlives its process with what its lines took, and an open line is recovered",
    async (first, crash) => {
      if (!first.jobs) return;
      await first.apply([reserveJob(), ...line(1), line(2)[0]]);
      await first.apply([...line(3, { state: "void", costNano: 0n, usage: {} })]);
      const store = await crash();
      const { recovered } = await store.open(SECOND_OWNER);
      assert.equal(recovered, 1);
      assert.equal((await readEntries(store, JOB)).length, 1);
      assert.equal((await readEntries(store, "line-2"))[1]?.outcome, "recovered");
      // 300 and 400 used, 3,200 reserved.
      assert.equal(await readRemaining(store, {}), 10_000n - 300n - 400n - 3_200n);
      await store.apply([...line(1), ...line(4)]);
      assert.equal(await readRemaining(store, {}), 10_000n - 300n - 400n - 300n - 2_800n);
      await applyOne(store, settleJob());
      assert.equal(await readRemaining(store, {}), 9_000n);
      assert.deepEqual(await (store.verify?.() ?? []), []);
    },
  ],
  [
    "a line whose reserve was abandoned and repeated is billed once",
    async (store) => {
      if (!store.jobs) return;
      const abandon = settleCommand("line-1", {
        state: "void",
        costNano: 0n,
        usage: {},
        outcome: "abandoned",
      });
      await store.apply([reserveJob(), line(1)[0], abandon]);
      await store.apply([line(1)[0], abandon, { ...abandon, outcome: "invalid" }]);
      assert.equal((await readEntries(store, "line-1")).length, 2);
      await store.apply([...line(1), ...line(1), abandon]);
      const rows = await readEntries(store, "line-1");
      assert.deepEqual(
        rows.map(({ kind, outcome, costNano }) => [kind, outcome, costNano]),
        [
          ["reserve", "open", null],
          ["settle", "abandoned", 0n],
          ["adjust", "adjusted", 300n],
        ],
      );
      await applyOne(store, settleJob());
      assert.equal(await readRemaining(store, {}), 9_700n);
      assert.deepEqual(await (store.verify?.() ?? []), []);
    },
  ],
  [
    "pruning a part of a job keeps what its lines took, whatever its end",
    async (store) => {
      if (!store.jobs || !store.maintenance?.prune) return;
      const later = NOON + 86_400_000;
      await store.apply([reserveJob(), ...line(1), line(2)[0]]);
      await store.apply([
        { ...line(2)[1], at: later },
        ...line(3, { at: later }, later),
        settleJob({ state: "estimated", costNano: 2_800n, outcome: "expired", at: later }),
      ]);
      const used = await readRemaining(store, REQUESTS);
      assert.equal(used, 90n);
      assert.equal((await store.maintenance.prune(NOON + 10_000)).rows > 0, true);
      assert.deepEqual(await (store.verify?.() ?? []), []);
      assert.equal(await readRemaining(store, REQUESTS), used);
    },
  ],
  [
    "a transferred job keeps its record and the amounts that its lines took",
    async (source, crash, { createEmpty }) => {
      if (!source.jobs || !source.transfer || !createEmpty) return;
      await source.apply([reserveJob(), ...line(1)]);
      await source.apply([...line(3, { state: "void", costNano: 0n, usage: {} })]);
      await source.jobs.put(jobRecord("a", { attempt: JOB }));
      const target = await createEmpty();
      await transferAll(await crash(), target);
      assert.equal((await target.open(SECOND_OWNER)).recovered, 0);
      assert.equal((await jobsOf(target).find("a"))?.attempt, JOB);
      await target.apply([...line(1), ...line(2)]);
      assert.equal(await readRemaining(target, {}), 10_000n - 600n - 3_200n);
      await applyOne(target, settleJob());
      assert.equal(await readRemaining(target, {}), 9_400n);
      assert.deepEqual(await (target.verify?.() ?? []), []);
    },
  ],
];

/** Creates a record of a batch that is due at noon. */
const jobRecord = (id: string, more: Partial<JobRecord> = {}): JobRecord => ({
  id,
  kind: "batch",
  key: "alice",
  account: "acme",
  version: 1,
  createdAt: NOON,
  state: "created",
  dueAt: NOON,
  data: '{"lines":3}',
  ...more,
});

const leaseRequest = (owner: string, more: { at?: number; limit?: number } = {}) => ({
  at: NOON,
  owner,
  leaseMs: 30_000,
  limit: 10,
  kinds: ["batch"],
  ...more,
});

async function assertConflict(change: Promise<unknown>): Promise<void> {
  const error = await change.then(
    () => assert.fail("The change was not rejected."),
    (e: unknown) => e,
  );
  assert.equal(getFault(error)?.code, "version_conflict", String(error));
}

const ids = (records: readonly JobRecord[]): string[] => records.map(({ id }) => id);

/** Checks of the records of jobs. */
export const jobRecordLaws: readonly Law[] = [
  [
    "a job changes version by version, and survives a crash",
    async (first, crash) => {
      if (!first.jobs) return;
      const record = jobRecord("a");
      await first.jobs.put(record);
      await first.jobs.put(record);
      await assertConflict(first.jobs.put({ ...record, state: "failed" }));
      await assertConflict(first.jobs.put(jobRecord("b", { version: 2 })));
      const changed = { ...record, version: 2, state: "submitted", attempt: JOB };
      await first.jobs.put(changed);
      const store = await crash();
      await store.open(SECOND_OWNER);
      const jobs = jobsOf(store);
      assert.deepEqual(await jobs.find("a"), changed);
      assert.equal(await jobs.find("b"), undefined);
      await assertConflict(jobs.delete("a", 1));
      await jobs.delete("a", 2);
      await jobs.delete("a", 2);
      assert.equal(await jobs.find("a"), undefined);
      await assertConflict(jobs.put({ ...changed, version: 3 }));
    },
  ],
  [
    "a job has one owner until its lease ends, and a late owner cannot write",
    async ({ jobs }) => {
      if (!jobs) return;
      await jobs.put(jobRecord("a"));
      await jobs.put(jobRecord("later", { dueAt: NOON + 60_000 }));
      await jobs.put(jobRecord("film", { kind: "video" }));
      await jobs.put(jobRecord("done", { dueAt: undefined, state: "completed" }));
      const leases = await Promise.all(
        ["one", "two", "three"].map((owner) => jobs.lease(leaseRequest(owner))),
      );
      const [mine, ...more] = leases.flat();
      assert.deepEqual(more, []);
      assert.equal(mine?.id, "a");
      assert.equal(mine.version, 2);
      assert.equal(mine.dueAt, NOON + 30_000);
      assert.deepEqual(await jobs.lease(leaseRequest("two", { at: NOON + 29_999 })), []);
      const [taken] = await jobs.lease(leaseRequest("two", { at: NOON + 30_000 }));
      assert.equal(taken?.owner, "two");
      await assertConflict(jobs.put({ ...mine, version: 3, state: "reading" }));
      await jobs.put({
        ...taken,
        version: 4,
        owner: undefined,
        dueAt: undefined,
        state: "completed",
      });
      assert.deepEqual(await jobs.lease(leaseRequest("one", { at: NOON + 59_999 })), []);
    },
  ],
  [
    "the next due time is that of the job that waits longest, by kind",
    async ({ jobs }) => {
      if (!jobs) return;
      assert.equal(await jobs.nextDueAt(["batch"]), undefined);
      await jobs.put(jobRecord("b", { dueAt: NOON + 2 }));
      await jobs.put(jobRecord("a", { dueAt: NOON + 1 }));
      await jobs.put(jobRecord("film", { kind: "video", dueAt: NOON - 5 }));
      await jobs.put(jobRecord("done", { dueAt: undefined }));
      assert.equal(await jobs.nextDueAt(["batch"]), NOON + 1);
      assert.equal(await jobs.nextDueAt(["batch", "video"]), NOON - 5);
      const leased = await jobs.lease(leaseRequest("one", { at: NOON + 2, limit: 1 }));
      assert.deepEqual(ids(leased), ["a"]);
      assert.equal(await jobs.nextDueAt(["batch"]), NOON + 2);
    },
  ],
  [
    "jobs are counted by kind and state, with the creation time of the oldest",
    async ({ jobs }) => {
      if (!jobs) return;
      assert.deepEqual(await jobs.count(["batch"]), []);
      await jobs.put(jobRecord("a", { createdAt: NOON + 5 }));
      await jobs.put(jobRecord("b", { createdAt: NOON + 3 }));
      await jobs.put(jobRecord("c", { createdAt: NOON, state: "completed", dueAt: undefined }));
      await jobs.put(jobRecord("film", { kind: "video", createdAt: NOON }));
      const { state } = jobRecord("a");
      const counts = [...(await jobs.count(["batch", "none"]))];
      counts.sort((one, other) => other.count - one.count);
      assert.deepEqual(counts, [
        { kind: "batch", state, count: 2, oldestAt: NOON + 3 },
        { kind: "batch", state: "completed", count: 1, oldestAt: NOON },
      ]);
    },
  ],
  [
    "jobs are listed newest first, in pages, without those of other accounts",
    async ({ jobs }) => {
      if (!jobs) return;
      for (let n = 0; n < 5; n++) await jobs.put(jobRecord(`a${n}`, { createdAt: NOON + n }));
      await jobs.put(jobRecord("nested", { account: "acme/research" }));
      await jobs.put(jobRecord("foreign", { account: "umbrella", key: "bob" }));
      await jobs.put(jobRecord("free", { account: undefined, key: "carol" }));
      const seen: string[] = [];
      for (let after: string | undefined; ;) {
        const page = await jobs.list({ account: "acme" }, { limit: 2, after });
        seen.push(...ids(page.items));
        after = page.next;
        if (after === undefined) break;
      }
      assert.deepEqual(seen, ["a4", "a3", "a2", "a1", "a0"]);
      const after = jobCursor(jobRecord("a2", { createdAt: NOON + 2 }));
      assert.deepEqual(ids((await jobs.list({ account: "acme" }, { after })).items), ["a1", "a0"]);
      const oldest = { account: "acme", order: "oldest_first" } as const;
      assert.deepEqual(ids((await jobs.list(oldest)).items), ["a0", "a1", "a2", "a3", "a4"]);
      const { items, next } = await jobs.list(oldest, { limit: 2, after });
      assert.deepEqual(ids(items), ["a3", "a4"]);
      assert.equal(next, undefined);
      const first = await jobs.list(oldest, { limit: 2 });
      assert.deepEqual(ids(first.items), ["a0", "a1"]);
      assert.deepEqual(ids((await jobs.list(oldest, { after: first.next })).items), [
        "a2",
        "a3",
        "a4",
      ]);
      assert.deepEqual(ids((await jobs.list({ key: "carol" })).items), ["free"]);
      assert.deepEqual((await jobs.list({ account: "acme", state: "failed" })).items, []);
      assert.equal((await jobs.list({})).items.length, 8);
    },
  ],
];

const fleetBudget = fleetClaim("key:k", 100_000n, 20_000n);

/** Creates the reserve of a job with 20 lines of 1,000 nano-dollars. */
const reserveFleetJob = () => ({
  ...reserveNow(JOB, [fleetBudget], 20_000n),
  job: { attempt: JOB },
});

/** Creates the reserve of a line with the current time. */
const reserveFleetLine = (attempt: string) => ({
  ...reserveNow(attempt, []),
  job: { attempt: JOB, take: { nano_usd: 1_000n } },
});

/** Checks of jobs that several instances share. */
export const fleetJobLaws: readonly FleetLaw[] = [
  [
    "the lines of a job that all instances read concurrently count once",
    async (all) => {
      if (!all[0].store.jobs) return;
      await all[0].apply([reserveFleetJob()]);
      const names = attemptIds(20);
      await onAll(all, (one, i) =>
        one.apply(
          (i % 2 ? names : names.toReversed()).flatMap((name) => [
            reserveFleetLine(name),
            settleNow(name, 600n),
          ]),
          8 + 2 * i,
        ),
      );
      const usage = await readLimitUsage(all[0].store, fleetBudget);
      if (usage) assert.deepEqual(usage, [12_000n, 0n]);
      const rows = await listEntriesUntil(all.at(-1)!.store, 41);
      for (const name of names) assert.deepEqual(rowKinds(rows, name), ["reserve", "ok"]);
      await onAll(all, (one) => one.apply([{ ...settleNow(JOB, 0n), state: "void", usage: {} }]));
      assert.equal((await listEntriesUntil(all[0].store, 42)).length, 42);
      assert.deepEqual(await (all[0].store.verify?.() ?? []), []);
    },
  ],
  [
    "a job stays open when its instance dies, and its open lines are recovered",
    async (all, { expireLease }) => {
      if (!all[0].store.jobs || !expireLease || !all[1]) return;
      await all[0].apply([reserveFleetJob(), reserveFleetLine("a"), reserveFleetLine("b")]);
      await expireLease(all[0].name);
      await all[1].apply([heartbeatCommand()]);
      await all[1].apply([settleNow("a", 600n), reserveFleetLine("c"), settleNow("c", 600n)]);
      const rows = await listEntriesUntil(all[1].store, 8);
      assert.deepEqual(rowKinds(rows, JOB), ["reserve"]);
      const usage = await readLimitUsage(all[1].store, fleetBudget);
      // Both open lines were recovered at 1,000 each. The actual cost of one arrived later.
      if (usage) assert.deepEqual(usage, [600n + 1_000n + 600n, 17_000n]);
    },
  ],
  [
    "one of all instances leases a job, and after the end of its lease another one",
    async (all) => {
      const stores = all.map(({ store }) => store.jobs);
      if (!stores.every((jobs) => jobs !== undefined)) return;
      const at = wallClock();
      await stores[0]!.put(jobRecord("a", { dueAt: at - 1_000 }));
      const lease = async (leaseMs: number): Promise<readonly JobRecord[]> => {
        const leased = await onAll(all, ({ name }, i) =>
          stores[i]!.lease({ ...leaseRequest(name, { at }), leaseMs }),
        );
        return leased.flat().sort((a, b) => a.version - b.version);
      };
      // A lease of 0 ms has ended when another instance asks.
      const first = await lease(0);
      const later = await lease(60_000);
      const versions = [...first, ...later].map(({ version }) => version);
      assert.deepEqual(
        versions,
        versions.map((_, i) => i + 2),
      );
      assert.equal(later.length, 1);
      assert.deepEqual(await lease(60_000), []);
      const [mine] = first;
      assert.ok(mine);
      await assertConflict(stores[0]!.put({ ...mine, version: 3, state: "reading" }));
    },
  ],
];

function jobsOf(store: Store): NonNullable<Store["jobs"]> {
  assert.ok(store.jobs);
  return store.jobs;
}
