// Rules for job records, and a table of them in memory.
import {
  fail,
  type JobLeaseRequest,
  type JobQuery,
  type JobRecord,
  type JobStore,
} from "../plugin/index.ts";
import { jobCursor } from "../plugin/store/job-cursor.ts";
import { toJson } from "./bigint-json.ts";
import { pageSize, toPage } from "./row-journal.ts";

/** Maximum length of the engine's own data in a record, in bytes of UTF-8. */
export const MAX_JOB_DATA_BYTES = 65_536;

/**
 * Returns whether a record differs from the stored one. Throws `conflict` if its version does not
 * follow, and `invalid` if it is not a record.
 */
export function isJobChange(record: JobRecord, before: JobRecord | undefined): boolean {
  const { id, version, createdAt, dueAt = 0, data } = record;
  if (!id || !record.kind || !record.state) rejectRecord(id, "lacks an ID, a kind, or a state");
  if (!(Number.isSafeInteger(version) && version > 0)) rejectRecord(id, `has version ${version}`);
  if (!(Number.isFinite(createdAt) && Number.isFinite(dueAt)))
    rejectRecord(id, "has a time that is not a moment");
  if (Buffer.byteLength(data) > MAX_JOB_DATA_BYTES)
    rejectRecord(id, `has more than ${MAX_JOB_DATA_BYTES} bytes of data`);
  if (before?.version === version && toJson(before) === toJson(record)) return false;
  if (version !== (before?.version ?? 0) + 1) rejectVersion(id, before?.version);
  return true;
}

/** Throws `conflict` for a change that does not follow the stored version. */
export const rejectVersion = (id: string, version: number | undefined): never =>
  fail(
    "conflict",
    version === undefined
      ? `The job ${id} does not exist, so it cannot be changed.`
      : `The job ${id} was changed by another instance: it is now at version ${version}.`,
    { code: "version_conflict" },
  );

const rejectRecord = (id: string, how: string): never =>
  fail("invalid", `The job ${id} ${how}.`, { code: "invalid_job" });

/** Returns the record of a job after it was leased. */
export const leasedJob = (
  record: JobRecord,
  { at, owner, leaseMs }: Pick<JobLeaseRequest, "at" | "owner" | "leaseMs">,
): JobRecord => ({ ...record, version: record.version + 1, owner, dueAt: at + leaseMs });

const matchesJob = (record: JobRecord, { key, account, kind, state }: JobQuery): boolean =>
  (key === undefined || record.key === key) &&
  (account === undefined || record.account === account) &&
  (kind === undefined || record.kind === kind) &&
  (state === undefined || record.state === state);

/** Creates a table of jobs for a store that ends with its process. It never returns its own objects. */
export function createMemoryJobs(): JobStore {
  const records = new Map<string, JobRecord>();
  /** Returns the records that are due, the longest overdue first. */
  const findDue = ({ kinds, at }: JobLeaseRequest) =>
    [...records.values()]
      .filter(({ kind, dueAt }) => dueAt != null && dueAt <= at && kinds.includes(kind))
      .sort((a, b) => a.dueAt! - b.dueAt!);
  return {
    async put(record) {
      if (isJobChange(record, records.get(record.id)))
        records.set(record.id, structuredClone(record));
    },
    find: async (id) => structuredClone(records.get(id)),
    async list(query, page) {
      const after = page?.after;
      const sign = query.order === "oldest_first" ? 1 : -1;
      const compare = (a: string, b: string) => (a === b ? 0 : a > b ? sign : -sign);
      const found = [...records.values()]
        .filter(
          (record) =>
            matchesJob(record, query) &&
            (after === undefined || compare(jobCursor(record), after) > 0),
        )
        .sort((a, b) => compare(jobCursor(a), jobCursor(b)));
      return structuredClone(toPage(found, pageSize(page), jobCursor));
    },
    async lease(request) {
      return findDue(request)
        .slice(0, request.limit)
        .map((record) => {
          const leased = leasedJob(record, request);
          records.set(record.id, leased);
          return structuredClone(leased);
        });
    },
    async nextDueAt(kinds) {
      let next = Infinity;
      for (const { kind, dueAt } of records.values())
        if (dueAt != null && dueAt < next && kinds.includes(kind)) next = dueAt;
      return next === Infinity ? undefined : next;
    },
    async count(kinds) {
      const all = [...records.values()].filter(({ kind }) => kinds.includes(kind));
      return [...Map.groupBy(all, ({ kind, state }) => `${kind}\n${state}`).values()].map(
        (some) => ({
          kind: some[0]!.kind,
          state: some[0]!.state,
          count: some.length,
          oldestAt: Math.floor(Math.min(...some.map(({ createdAt }) => createdAt))),
        }),
      );
    },
    async delete(id, version) {
      const before = records.get(id);
      if (before && before.version !== version) rejectVersion(id, before.version);
      records.delete(id);
    },
  };
}
