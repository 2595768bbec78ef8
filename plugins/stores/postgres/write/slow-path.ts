// The slow path, for batches that are not plain, that do not fit, or that conflict with other
// changes. One transaction reads the existing rows of the batch's calls and locks the meters in
// order. The ledger rules then decide the whole batch, and the transaction writes the result.
import { awaitAll } from "../connection/await-all.ts";
import type { AccountRecord, KeyRecord, StoreCommand, CommandResult } from "tollgate/plugin";
import {
  mergeClaims,
  meterId,
  createLedgerRules,
  fromJson,
  createMeter,
  type Meter,
  reservedAmounts,
  decodeLineAmounts,
  decodeColumns,
  type ColumnRow,
} from "tollgate/store";
import { isMemberMeter, parseMeterId } from "../rows/batch-plan.ts";
import { countMembersSql, lockGroupsSql } from "../schema/meter-sweep-sql.ts";
import { createBatchJournal, type BatchJournal, type StoredOpenCall } from "./batch-journal.ts";
import type { RunSql, Row } from "../connection/pipelined-connection.ts";
import { textArray } from "../connection/array-literal.ts";
import type { PlannedRow, TermsCache } from "../rows/call-terms.ts";
import { failFenced } from "../connection/errors.ts";
import { chainBatch, writeBatch } from "./slow-path-writes.ts";
import { nodeJoinSql, ROW_SELECT_SQL } from "../rows/row-sql.ts";

/** The writing instance and the state of its node row. */
export interface NodePosition {
  readonly instance: string;
  readonly epoch: number;
  readonly n: number;
  readonly head: Buffer;
}

/** The written data that the node must keep in memory. */
export interface SlowPathResult {
  readonly n: number;
  readonly head: Buffer;
  readonly results: readonly CommandResult[];
  readonly databaseTime: number;
  readonly rows: BatchJournal["rows"];
  readonly booked: readonly PlannedRow[];
  /** Calls that have ended, of this node and other nodes. */
  readonly settledAttempts: readonly string[];
}

/**
 * Context of the slow path. `timeOverride` returns the time of a command if limits do not use the
 * database clock.
 */
export interface SlowPathContext {
  readonly sql: RunSql;
  readonly schema: string;
  readonly timeOverride: ((command: StoreCommand) => number) | undefined;
  readonly terms: TermsCache;
  /** Called when the commit is sent. The commit may have happened from then on. */
  readonly onCommitting: (written: SlowPathResult) => void;
}

const TIMEOUTS_SQL = `SELECT set_config('lock_timeout', '1000', true), set_config('statement_timeout', '2000', true),
  set_config('idle_in_transaction_session_timeout', '2000', true)`;

/**
 * Applies checked commands in order and returns their results in the same order. If it throws,
 * nothing was written, unless the commit was already sent.
 */
export async function applySlowPath(
  batch: readonly StoreCommand[],
  me: NodePosition,
  means: SlowPathContext,
): Promise<SlowPathResult> {
  for (let more: readonly string[] = [], round = 0; ; round++) {
    const done = await tryOnce(batch, me, means, more);
    if (!("missing" in done)) return done;
    if (round > 3) throw new Error("Cannot determine the meters of the batch.");
    more = [...more, ...done.missing];
  }
}

async function tryOnce(
  batch: readonly StoreCommand[],
  me: NodePosition,
  means: SlowPathContext,
  more: readonly string[],
): Promise<SlowPathResult | { missing: readonly string[] }> {
  const { sql } = means;
  const begun: { yes: boolean } = { yes: false };
  try {
    const found = await readBatchState(batch, me, means);
    begun.yes = true;
    const groups = groupsOf(batch, found, means.timeOverride);
    const members = await lockGroups(groups, means);
    const { t, meters } = await lockMeters(
      meterIdsOf(batch, found, more, means.timeOverride),
      found.journal.openRows,
      means,
    );
    const book = createLedgerRules(found.journal.journal, () => me.instance);
    for (const [group, count] of members) book.setMembersElsewhere(group, count);
    for (const { meter, peak } of meters.values()) {
      book.loadMeter(meter);
      meter.peak = peak;
    }
    for (const call of found.journal.openRows) book.restoreCall(call);
    const verdicts = batch.map((command) => {
      found.journal.setCommand(command);
      return book.apply({ ...command, at: means.timeOverride?.(command) ?? t });
    });
    const changed = [...book.changedMeters()];
    const missing = changed.filter(({ id }) => !meters.has(id)).map(({ id }) => id);
    if (missing.length > 0) {
      await sql({ text: "ROLLBACK" });
      return { missing };
    }
    const settled = found.journal.rows.filter(({ kind }) => kind === "settle");
    const chain = chainBatch(found.journal, { ...me, n: found.n, head: found.head }, means.terms);
    const written: SlowPathResult = {
      n: chain?.n ?? found.n,
      head: chain?.head ?? found.head,
      results: verdicts,
      databaseTime: t,
      rows: found.journal.rows,
      booked: chain?.rows ?? [],
      settledAttempts: settled.map((row) => row.attempt),
    };
    const pending = writeBatch(found.journal, changed, chain, me.epoch, means);
    const unused = [...meters.keys()].filter(
      (id) => isMemberMeter(id) && !changed.some((meter) => meter.id === id),
    );
    if (unused.length > 0) pending.push(sql(deleteUnusedQuery(means.schema, unused)));
    means.onCommitting(written);
    await awaitAll([...pending, sql({ text: "COMMIT" })]);
    return written;
  } catch (error) {
    await sql({ text: "ROLLBACK" }).catch(() => undefined);
    throw error;
  }
}

const attemptsOf = (c: StoreCommand): readonly string[] =>
  c.do === "reserve" && c.job
    ? [c.attempt, c.job.attempt]
    : "attempt" in c
      ? [c.attempt]
      : NO_ATTEMPTS;
const NO_ATTEMPTS: readonly string[] = [];

function parseOpenCall({ usage, cost, line_amounts: lines }: Row): StoredOpenCall {
  return {
    progress:
      typeof usage === "string"
        ? { usage: JSON.parse(usage), costNano: typeof cost === "string" ? BigInt(cost) : null }
        : undefined,
    lineAmounts: typeof lines === "string" ? decodeLineAmounts(lines) : undefined,
  };
}

interface BatchState {
  readonly journal: BatchJournal;
  readonly databaseTime: number;
  readonly n: number;
  readonly head: Buffer;
}

/**
 * Reads what exists of the batch's calls, their jobs, and records. Locks the node row, the open
 * calls, and the accounts and keys that are read.
 */
async function readBatchState(
  batch: readonly StoreCommand[],
  { epoch, instance }: NodePosition,
  { sql, schema }: SlowPathContext,
): Promise<BatchState> {
  const attempts = textArray([...new Set(batch.flatMap(attemptsOf))]);
  const withJobs = `$1::text[] || ARRAY(SELECT job FROM ${schema}.open_call WHERE attempt = ANY ($1::text[]) AND job IS NOT NULL)`;
  const accounts = batch.some((c) => c.do === "account");
  const digests = batch.flatMap((c) => (c.do === "key" ? [c.key.digest] : []));
  const [, , nodes, clock, open, rows, records, keys] = await awaitAll<readonly Row[]>([
    sql({ text: "BEGIN" }),
    sql({ text: TIMEOUTS_SQL }),
    sql({
      text: `SELECT state, n, head FROM ${schema}.node WHERE epoch = $1 FOR NO KEY UPDATE`,
      values: [epoch],
    }),
    sql({ text: CLOCK_SQL }),
    sql({
      text: `SELECT attempt, usage, cost, line_amounts FROM ${schema}.open_call WHERE attempt = ANY (${withJobs}) ORDER BY attempt FOR UPDATE`,
      values: [attempts],
    }),
    sql({
      text: `SELECT ${ROW_SELECT_SQL} FROM ${schema}.entry e ${nodeJoinSql(schema)} WHERE e.attempt = ANY (${withJobs}) ORDER BY e.kind`,
      values: [attempts],
    }),
    accounts
      ? sql({ text: `SELECT record FROM ${schema}.account ORDER BY id FOR UPDATE` })
      : Promise.resolve([]),
    digests.length > 0
      ? sql({
          text: `SELECT record FROM ${schema}.key WHERE digest = ANY ($1::text[]) ORDER BY digest FOR UPDATE`,
          values: [textArray(digests)],
        })
      : Promise.resolve([]),
  ]);
  const [node] = nodes!;
  if (node?.["state"] !== "live") failFenced();
  const accountsKept = records!.map(({ record }) => fromJson<AccountRecord>(record!));
  const keysKept = keys!.map(({ record }) => fromJson<KeyRecord>(record!));
  return {
    journal: createBatchJournal(
      rows!.map((row) => decodeColumns(row as ColumnRow)),
      new Map(open!.map((row) => [row["attempt"]!, parseOpenCall(row)])),
      {
        accounts: new Map(accountsKept.map((record) => [record.id, record])),
        keys: new Map(keysKept.map((record) => [record.digest, record])),
      },
      instance,
    ),
    databaseTime: Number(clock![0]!["t"]),
    n: Number(node!["n"]),
    head: parseBytea(node!["head"]!),
  };
}

/** SQL for the database time, in Unix milliseconds. */
export const CLOCK_SQL = "SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint AS t";

/** Parses `\x…`, the form in which the server returns bytes. */
export const parseBytea = (text: string): Buffer => Buffer.from(text.slice(2), "hex");

/**
 * Returns the meters that the batch may change: the meters of its claims, and of calls that it
 * settles or adjusts.
 */
function meterIdsOf(
  batch: readonly StoreCommand[],
  { journal: { journal, openRows }, databaseTime }: BatchState,
  more: readonly string[],
  own: SlowPathContext["timeOverride"],
): readonly string[] {
  const ids = new Set(more);
  for (const call of openRows) for (const [id] of call.meterAmounts) ids.add(id);
  for (const c of batch) {
    if (c.do === "reserve")
      for (const { meter } of mergeClaims(c.claims, own?.(c) ?? databaseTime, NO_METERS))
        ids.add(meter.id);
    if (c.do === "member")
      for (const { scope, unit, per } of c.limits)
        ids.add(meterId(scope, unit, per, own?.(c) ?? databaseTime));
    if (c.do === "settle" || c.do === "adjust")
      for (const [id] of journal.closedCall(c.attempt)?.reserve.meterAmounts ?? []) ids.add(id);
  }
  return [...ids];
}

const NO_METERS: ReadonlyMap<string, never> = new Map<string, never>();

/** Groups whose members the batch claims. */
interface ClaimedGroups {
  readonly names: readonly string[];
  /** Scopes of the members. */
  readonly scopes: readonly string[];
  readonly at: number;
}

function groupsOf(
  batch: readonly StoreCommand[],
  { databaseTime }: BatchState,
  own: SlowPathContext["timeOverride"],
): ClaimedGroups {
  const names = new Set<string>();
  const scopes = new Set<string>();
  let at = own ? 0 : databaseTime;
  for (const c of batch) {
    if (c.do !== "reserve") continue;
    if (own) at = Math.max(at, own(c));
    for (const { maxMembers, meter } of mergeClaims(c.claims, at, NO_METERS)) {
      if (maxMembers === undefined || !meter.member) continue;
      names.add(meter.member.group);
      scopes.add(meter.member.scope);
    }
  }
  return { names: [...names], scopes: [...scopes], at };
}

/**
 * Locks groups, so that no other gateway adds a member, and returns how many members they have
 * besides those of the batch.
 */
async function lockGroups(
  { names, scopes, at }: ClaimedGroups,
  { sql, schema }: SlowPathContext,
): Promise<ReadonlyMap<string, number>> {
  if (names.length === 0) return NO_GROUPS;
  const groups = textArray(names);
  const [, rows] = await awaitAll([
    sql({ text: lockGroupsSql(schema), values: [groups] }),
    sql({
      text: countMembersSql(schema),
      values: [groups, textArray(scopes), String(Math.floor(at))],
    }),
  ]);
  return new Map(rows!.map(({ name, members }) => [name!, Number(members)]));
}
const NO_GROUPS: ReadonlyMap<string, number> = new Map();

/** Deletes meters that were created to be locked, and that the batch does not use. */
const deleteUnusedQuery = (schema: string, ids: readonly string[]) => ({
  text: `DELETE FROM ${schema}.meter WHERE id = ANY ($1::text[]) AND level = 0 AND reserved = 0 AND at = 0 AND max = 0`,
  values: [textArray(ids)],
});

type LockedMeters = ReadonlyMap<string, { readonly meter: Meter; readonly peak: bigint }>;

/**
 * Locks meters in the order of their IDs. Returns their states without the reservations of open
 * calls, which are restored afterward.
 */
async function lockMeters(
  ids: readonly string[],
  open: BatchJournal["openRows"],
  { sql, schema }: SlowPathContext,
): Promise<{ t: number; meters: LockedMeters }> {
  const list = textArray(ids);
  const [, rows, clock] = await awaitAll([
    sql({
      text: `SELECT ${schema}.lock_meters_1($1::text[])`,
      values: [list],
    }),
    sql({
      text: `SELECT id, level, reserved, at, max, peak, notified_level, changes FROM ${schema}.meter WHERE id = ANY ($1::text[])`,
      values: [list],
    }),
    sql({ text: CLOCK_SQL }),
  ]);
  const held = new Map<string, bigint>();
  for (const call of open)
    for (const [id, amount] of reservedAmounts(call)) held.set(id, (held.get(id) ?? 0n) + amount);
  const meters = new Map(
    rows!.map((row) => {
      const { meter, peak } = parseMeter(row);
      if (parseMeterId(meter.id).period === 0) meter.reserved -= held.get(meter.id) ?? 0n;
      return [meter.id, { meter, peak }];
    }),
  );
  return { t: Number(clock![0]!["t"]), meters };
}

/**
 * Parses a meter row. Loading a meter into the rules resets its peak, so the peak is returned
 * separately and must be set again afterwards.
 */
export function parseMeter(row: Row): { meter: Meter; peak: bigint } {
  const meter = createMeter(row["id"]!);
  meter.level = BigInt(row["level"]!);
  meter.reserved = BigInt(row["reserved"]!);
  meter.at = Number(row["at"]);
  meter.max = BigInt(row["max"]!);
  meter.notifiedLevel = BigInt(row["notified_level"]!);
  if (row["changes"]) meter.changes = row["changes"].split(" ");
  return { meter, peak: BigInt(row["peak"]!) };
}
