// Records of jobs. They change often and are deleted, so they are not part of the hash chain.
import type { DatabaseSync, SQLInputValue } from "node:sqlite";
import type {
  JobCount,
  JobLeaseRequest,
  JobQuery,
  JobRecord,
  PageRequest,
  ResultPage,
} from "tollgate/plugin";
import {
  createdAtOfCursor,
  leasedJob,
  fromJson,
  isJobChange,
  jobCursor,
  pageSize,
  rejectVersion,
  toJson,
  toPage,
} from "tollgate/store";

const parseRecord = (row: { readonly [column: string]: unknown }): JobRecord =>
  fromJson<JobRecord>(String(row["record"]));

export function findJob(db: DatabaseSync, id: string): JobRecord | undefined {
  const row = db.prepare("SELECT record FROM job WHERE id = ?").get(id);
  return row && parseRecord(row);
}

export function putJob(db: DatabaseSync, record: JobRecord): void {
  if (isJobChange(record, findJob(db, record.id))) writeJob(db, record);
}

/** Writes a record, whatever its version is. */
export function writeJob(db: DatabaseSync, record: JobRecord): void {
  const { id, kind, key, account = null, state, version, dueAt } = record;
  db.prepare(
    "INSERT INTO job (id, cursor, kind, key, account, state, version, due_at, record) " +
      "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET " +
      "cursor = excluded.cursor, kind = excluded.kind, key = excluded.key, account = excluded.account, " +
      "state = excluded.state, version = excluded.version, due_at = excluded.due_at, record = excluded.record",
  ).run(
    id,
    jobCursor(record),
    kind,
    key,
    account,
    state,
    version,
    dueAt === undefined ? null : Math.ceil(dueAt),
    toJson(record),
  );
}

/** Lists jobs in the order of the query. */
export function listJobs(
  db: DatabaseSync,
  query: JobQuery,
  page?: PageRequest,
): ResultPage<JobRecord> {
  const conditions: string[] = [];
  const values: SQLInputValue[] = [];
  const add = (condition: string, value: string | undefined): void => {
    if (value === undefined) return;
    conditions.push(condition);
    values.push(value);
  };
  add("key = ?", query.key);
  add("account = ?", query.account);
  add("kind = ?", query.kind);
  add("state = ?", query.state);
  const isAscending = query.order === "oldest_first";
  add(isAscending ? "cursor > ?" : "cursor < ?", page?.after);
  const where = conditions.length === 0 ? "" : `WHERE ${conditions.join(" AND ")}`;
  const size = pageSize(page);
  const found = db
    .prepare(
      `SELECT record FROM job ${where} ORDER BY cursor ${isAscending ? "ASC" : "DESC"} LIMIT ?`,
    )
    .all(...values, size + 1)
    .map(parseRecord);
  return toPage(found, size, jobCursor);
}

/** Leases due jobs. */
export function leaseJobs(db: DatabaseSync, request: JobLeaseRequest): readonly JobRecord[] {
  const found = db
    .prepare(
      "SELECT record FROM job WHERE kind IN (SELECT value FROM json_each(?)) AND due_at <= ? " +
        "ORDER BY due_at LIMIT ?",
    )
    .all(JSON.stringify(request.kinds), Math.floor(request.at), request.limit);
  return found.map((row) => {
    const leased = leasedJob(parseRecord(row), request);
    writeJob(db, leased);
    return leased;
  });
}

/** Returns the time at which the next job of these kinds is due. */
export function nextJobDueAt(db: DatabaseSync, kinds: readonly string[]): number | undefined {
  const row = db
    .prepare(
      "SELECT min(due_at) AS due FROM job WHERE due_at IS NOT NULL AND kind IN (SELECT value FROM json_each(?))",
    )
    .get(JSON.stringify(kinds));
  const due = row?.["due"];
  return due === null || due === undefined ? undefined : Number(due);
}

/** Counts the jobs of these kinds by kind and state. */
export function countJobs(db: DatabaseSync, kinds: readonly string[]): readonly JobCount[] {
  return db
    .prepare(
      "SELECT kind, state, count(*) AS count, min(cursor) AS oldest FROM job " +
        "WHERE kind IN (SELECT value FROM json_each(?)) GROUP BY kind, state",
    )
    .all(JSON.stringify(kinds))
    .map((row) => ({
      kind: String(row["kind"]),
      state: String(row["state"]),
      count: Number(row["count"]),
      oldestAt: createdAtOfCursor(String(row["oldest"])),
    }));
}

export function deleteJob(db: DatabaseSync, id: string, version: number): void {
  const before = findJob(db, id);
  if (!before) return;
  if (before.version !== version) rejectVersion(id, before.version);
  db.prepare("DELETE FROM job WHERE id = ?").run(id);
}
