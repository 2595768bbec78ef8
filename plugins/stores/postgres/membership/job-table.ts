// Records of jobs. A change has to follow the stored version, so gateways need no other lock.
import type { JobRecord, JobStore } from "tollgate/plugin";
import {
  createdAtOfCursor,
  fromJson,
  isJobChange,
  jobCursor,
  pageSize,
  rejectVersion,
  toColumnText,
  toJson,
  toPage,
} from "tollgate/store";
import { numberArray, textArray } from "../connection/array-literal.ts";
import type { Row, RunSql } from "../connection/pipelined-connection.ts";
import { SqlParameters } from "../read/where-clause.ts";

const FIELDS_SQL = "record, version, owner, due_at";

/** A lease changes columns only, so these replace the fields of the record. */
function parseRecord({ record, version, owner, due_at: dueAt }: Row): JobRecord {
  const { owner: _owner, dueAt: _dueAt, ...fixed } = fromJson<JobRecord>(record!);
  return {
    ...fixed,
    version: Number(version),
    ...(typeof owner === "string" && { owner }),
    ...(typeof dueAt === "string" && { dueAt: Number(dueAt) }),
  };
}

/** Returns a record in the form in which `parseRecord` returns it. */
function normalizeRecord({ version, owner, dueAt, ...fixed }: JobRecord): JobRecord {
  return {
    ...fixed,
    version,
    ...(owner !== undefined && { owner: toColumnText(owner) }),
    ...(dueAt !== undefined && { dueAt: Math.ceil(dueAt) }),
  };
}

/**
 * Creates the table of jobs.
 * @param usesCommandTime Whether leases use the time of the request instead of the database clock.
 */
export function createJobTable(sql: RunSql, schema: string, usesCommandTime: boolean): JobStore {
  const table = `${schema}.job`;
  const find = async (id: string): Promise<JobRecord | undefined> => {
    const [row] = await sql({
      text: `SELECT ${FIELDS_SQL} FROM ${table} WHERE id = $1`,
      values: [toColumnText(id)],
    });
    return row && parseRecord(row);
  };
  return {
    find,
    async put(record) {
      const its = normalizeRecord(record);
      // If another gateway writes in between, the stored record is read again.
      while (isJobChange(its, await find(its.id))) if (await write(sql, table, its)) return;
    },
    async list({ key, account, kind, state, order }, page) {
      const isAscending = order === "oldest_first";
      const values = new SqlParameters();
      const conditions = Object.entries({ key, account, kind, state }).flatMap(([name, value]) =>
        value === undefined ? [] : [`${name} = ${values.add(value)}`],
      );
      if (page?.after !== undefined)
        conditions.push(`cursor ${isAscending ? ">" : "<"} ${values.add(page.after)}`);
      const size = pageSize(page);
      const rows = await sql({
        text: `SELECT ${FIELDS_SQL} FROM ${table} WHERE ${["true", ...conditions].join(" AND ")}
          ORDER BY cursor ${isAscending ? "ASC" : "DESC"} LIMIT ${values.add(size + 1)}`,
        values: values.all,
      });
      return toPage(rows.map(parseRecord), size, jobCursor);
    },
    async lease({ at, owner, leaseMs, limit, kinds }) {
      const rows = await sql({
        text: `WITH moment AS (SELECT coalesce($1::bigint, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint) AS t),
          due AS (SELECT id, due_at FROM ${table} WHERE kind = ANY ($2::text[]) AND due_at <= (SELECT t FROM moment)
            ORDER BY due_at, id LIMIT $3 FOR UPDATE SKIP LOCKED),
          leased AS (UPDATE ${table} j SET version = j.version + 1, owner = $4, due_at = (SELECT t FROM moment) + $5::bigint
            FROM due WHERE j.id = due.id RETURNING j.record, j.version, j.owner, j.due_at, due.due_at AS was_due, j.id)
          SELECT ${FIELDS_SQL} FROM leased ORDER BY was_due, id`,
        values: [
          usesCommandTime ? Math.floor(at) : null,
          textArray(kinds.map(toColumnText)),
          limit,
          toColumnText(owner),
          Math.floor(leaseMs),
        ],
      });
      return rows.map(parseRecord);
    },
    async nextDueAt(kinds) {
      const [row] = await sql({
        text: `SELECT min(due_at) AS due FROM ${table} WHERE due_at IS NOT NULL AND kind = ANY ($1::text[])`,
        values: [textArray(kinds.map(toColumnText))],
      });
      const due = row?.["due"];
      return typeof due === "string" ? Number(due) : undefined;
    },
    async count(kinds) {
      const rows = await sql({
        text: `SELECT kind, state, count(*) AS count, min(cursor) AS oldest FROM ${table}
          WHERE kind = ANY ($1::text[]) GROUP BY kind, state`,
        values: [textArray(kinds.map(toColumnText))],
      });
      return rows.map((row) => ({
        kind: String(row["kind"]),
        state: String(row["state"]),
        count: Number(row["count"]),
        oldestAt: createdAtOfCursor(String(row["oldest"])),
      }));
    },
    async delete(id, version) {
      const [row] = await sql({
        text: `WITH gone AS (DELETE FROM ${table} WHERE id = $1 AND version = $2)
          SELECT version FROM ${table} WHERE id = $1 AND version <> $2`,
        values: [toColumnText(id), version],
      });
      if (row) rejectVersion(id, Number(row["version"]));
    },
  };
}

/** Writes a record whose version follows. Returns false if the stored version is another one. */
async function write(sql: RunSql, table: string, record: JobRecord): Promise<boolean> {
  const { id, kind, key, account = null, state, version, owner = null, dueAt = null } = record;
  const [row] = await sql({
    text:
      version === 1
        ? `INSERT INTO ${table} (${COLUMNS.join(", ")}) VALUES (${COLUMNS.map((_, i) => `$${i + 1}`).join(", ")})
            ON CONFLICT (id) DO NOTHING RETURNING 1 AS done`
        : `UPDATE ${table} SET ${COLUMNS.map((name, i) => `${name} = $${i + 1}`).join(", ")}
            WHERE id = $1 AND version = $2 - 1 RETURNING 1 AS done`,
    values: [
      toColumnText(id),
      version,
      toColumnText(jobCursor(record)),
      toColumnText(kind),
      toColumnText(key),
      account === null ? null : toColumnText(account),
      toColumnText(state),
      owner,
      dueAt,
      toJson(record),
    ],
  });
  return row !== undefined;
}

const COLUMNS = [
  "id",
  "version",
  "cursor",
  "kind",
  "key",
  "account",
  "state",
  "owner",
  "due_at",
  "record",
] as const;

/** Returns all records, for another store. */
export async function readJobs(sql: RunSql, schema: string): Promise<readonly JobRecord[]> {
  const rows = await sql({ text: `SELECT ${FIELDS_SQL} FROM ${schema}.job ORDER BY cursor` });
  return rows.map(parseRecord);
}

/** Writes the records of another store, with their versions. */
export async function importJobs(
  sql: RunSql,
  schema: string,
  jobs: readonly JobRecord[],
): Promise<void> {
  const all = jobs.map(normalizeRecord);
  const texts = (pick: (job: JobRecord) => string | undefined) =>
    textArray(all.map((job) => toNullableText(pick(job))));
  await sql({
    text: `INSERT INTO ${schema}.job (id, version, cursor, kind, key, account, state, owner, due_at, record)
      SELECT * FROM unnest($1::text[], $2::bigint[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::bigint[], $10::text[])`,
    values: [
      texts(({ id }) => id),
      numberArray(all.map(({ version }) => version)),
      texts(jobCursor),
      texts(({ kind }) => kind),
      texts(({ key }) => key),
      texts(({ account }) => account),
      texts(({ state }) => state),
      texts(({ owner }) => owner),
      numberArray(all.map(({ dueAt = null }) => dueAt)),
      texts(toJson),
    ],
  });
}

const toNullableText = (text: string | undefined): string | null =>
  text === undefined ? null : toColumnText(text);
