// The exact way: for batches that are not plain, for what cannot fit and for what others have changed. One transaction reads what there is of the
// batch's calls, locks its meters in their order, lets the book decide all of it, and writes what the book says.
import { awaitAll } from "../connection/await-all.ts";
import type { AccountRecord, KeyRecord, StoreCommand, CommandResult } from "tollgate/plugin";
import { mergeClaims, createLedgerRules, fromJson, createMeter, type Meter } from "tollgate/store";
import { parseMeterId } from "../rows/batch-plan.ts";
import { createBatchJournal, type BatchJournal } from "./batch-journal.ts";
import type { RunSql, Row } from "../connection/pipelined-connection.ts";
import { textArray } from "../connection/array-literal.ts";
import { nodeJoinSql, decodeRow, ROW_SELECT_SQL, type StoredRow } from "../rows/row-codec.ts";
import type { PlannedRow, TermsCache } from "../rows/call-terms.ts";
import { failFenced } from "../connection/errors.ts";
import { chainBatch, writeBatch } from "./slow-path-writes.ts";

/** The instance that writes, as far as its row in the database goes. */
export interface NodePosition {
  readonly instance: string;
  readonly epoch: number;
  readonly n: number;
  readonly head: Buffer;
}

/** What was written, for the node to remember. */
export interface SlowPathResult {
  readonly n: number;
  readonly head: Buffer;
  readonly results: readonly CommandResult[];
  readonly databaseTime: number;
  readonly rows: BatchJournal["rows"];
  readonly booked: readonly PlannedRow[];
  /** Calls that are over, of this node and of others. */
  readonly settledAttempts: readonly string[];
}

/** How it asks, and by whose clock limits count: `own` gives the moment of a command where the database's clock is not to. */
export interface SlowPathContext {
  readonly sql: RunSql;
  readonly schema: string;
  readonly timeOverride: ((command: StoreCommand) => number) | undefined;
  readonly terms: TermsCache;
  /** Its commit is sent: from here on it may have happened. */
  readonly onCommitting: (written: SlowPathResult) => void;
}

const TIMEOUTS_SQL = `SELECT set_config('lock_timeout', '1000', true), set_config('statement_timeout', '2000', true),
  set_config('idle_in_transaction_session_timeout', '2000', true)`;

/** Checked commands, in their order; verdicts likewise. What it throws has not happened, unless it was committing. */
export async function applySlowPath(
  batch: readonly StoreCommand[],
  me: NodePosition,
  means: SlowPathContext,
): Promise<SlowPathResult> {
  for (let more: readonly string[] = [], round = 0; ; round++) {
    const done = await tryOnce(batch, me, means, more);
    if (!("missing" in done)) return done;
    if (round > 3) throw new Error("The batch's meters could not be found out.");
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
    const { t, meters } = await lockMeters(
      meterIdsOf(batch, found, more, means.timeOverride),
      found.journal.openRows,
      means,
    );
    const book = createLedgerRules(found.journal.journal, () => me.instance);
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
    const asked = writeBatch(found.journal, changed, chain, me.epoch, means);
    means.onCommitting(written);
    await awaitAll([...asked, sql({ text: "COMMIT" })]);
    return written;
  } catch (error) {
    await sql({ text: "ROLLBACK" }).catch(() => undefined);
    throw error;
  }
}

interface BatchState {
  readonly journal: BatchJournal;
  readonly databaseTime: number;
  readonly n: number;
  readonly head: Buffer;
}

/** What there is of the batch's calls and accounts; its open calls are locked, and its own number. */
async function readBatchState(
  batch: readonly StoreCommand[],
  { epoch, instance }: NodePosition,
  { sql, schema }: SlowPathContext,
): Promise<BatchState> {
  const attempts = textArray([
    ...new Set(batch.flatMap((c) => ("attempt" in c ? [c.attempt] : []))),
  ]);
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
      text: `SELECT attempt, usage, cost FROM ${schema}.open_call WHERE attempt = ANY ($1::text[]) ORDER BY attempt FOR UPDATE`,
      values: [attempts],
    }),
    sql({
      text: `SELECT ${ROW_SELECT_SQL} FROM ${schema}.entry e ${nodeJoinSql(schema)} WHERE e.attempt = ANY ($1::text[]) ORDER BY e.kind`,
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
  const heard = new Map(
    open!.map(({ attempt, usage, cost }) => [
      attempt!,
      usage === null || usage === undefined
        ? undefined
        : { usage: JSON.parse(usage), costNano: (cost ?? null) === null ? null : BigInt(cost!) },
    ]),
  );
  const accountsKept = records!.map(({ record }) => fromJson<AccountRecord>(record!));
  const keysKept = keys!.map(({ record }) => fromJson<KeyRecord>(record!));
  return {
    journal: createBatchJournal(
      rows!.map((row) => decodeRow(row as StoredRow)),
      heard,
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

/** The database's own time, in Unix milliseconds. */
export const CLOCK_SQL = "SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint AS t";

/** `\x…`, as the server writes bytes. */
export const parseBytea = (text: string): Buffer => Buffer.from(text.slice(2), "hex");

/** Meters that the batch may touch: of its claims, and of the calls that it ends or corrects. */
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
    if (c.do === "settle" || c.do === "adjust")
      for (const [id] of journal.closedCall(c.attempt)?.reserve.meterAmounts ?? []) ids.add(id);
  }
  return [...ids];
}

const NO_METERS: ReadonlyMap<string, never> = new Map<string, never>();

type LockedMeters = ReadonlyMap<string, { readonly meter: Meter; readonly peak: bigint }>;

/** Locked in the order of their names, and what they say without the calls that are restored after that. */
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
      text: `SELECT id, level, reserved, at, max, peak, notified_level FROM ${schema}.meter WHERE id = ANY ($1::text[])`,
      values: [list],
    }),
    sql({ text: CLOCK_SQL }),
  ]);
  const held = new Map<string, bigint>();
  for (const { meterAmounts } of open)
    for (const [id, amount] of meterAmounts) held.set(id, (held.get(id) ?? 0n) + amount);
  const meters = new Map(
    rows!.map((row) => {
      const { meter, peak } = parseMeter(row);
      if (parseMeterId(meter.id).period === 0) meter.reserved -= held.get(meter.id) ?? 0n;
      return [meter.id, { meter, peak }];
    }),
  );
  return { t: Number(clock![0]!["t"]), meters };
}

/** A meter as its row says it. Loading it into a book forgets its peak, which is to be said again then. */
export function parseMeter(row: Row): { meter: Meter; peak: bigint } {
  const meter = createMeter(row["id"]!);
  meter.level = BigInt(row["level"]!);
  meter.reserved = BigInt(row["reserved"]!);
  meter.at = Number(row["at"]);
  meter.max = BigInt(row["max"]!);
  meter.notifiedLevel = BigInt(row["notified_level"]!);
  return { meter, peak: BigInt(row["peak"]!) };
}
