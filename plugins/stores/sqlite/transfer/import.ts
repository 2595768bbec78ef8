// Imports the ledger of another store into a temporary file. The file is moved to its place after
// all rows have arrived and were verified.
import { partialImportPath } from "../data/partial-import.ts";
import { existsSync, renameSync, rmSync } from "node:fs";
import type { DatabaseSync } from "node:sqlite";
import { fail, type TransferredRemainder, type TransferredRows } from "tollgate/plugin";
import {
  fromMovedRow,
  toJson,
  type LedgerRow,
  decodeCommit,
  serializeTerms,
  encodeAmount,
  encodeSettleFields,
  encodeIdentity,
  hashText,
  assertSameTotals,
  checkpointOfImport,
  LedgerReplay,
  splitByInstance,
  COMPARED_TOTALS,
} from "tollgate/store";
import { appendAudit } from "../audit-log.ts";
import { readHead } from "../data/chain.ts";
import { writeJob } from "../data/jobs.ts";
import type { SqliteJournal, StoredCall } from "../write/journal.ts";
import { readTotals } from "./export.ts";
import { lockLedger } from "../lock.ts";
import { verifyLedger } from "../read/reader.ts";
import { LedgerSession } from "../write/ledger-session.ts";
import { type Checkpoint } from "../data/checkpoint.ts";
import { BATCH_COLUMNS, type StoredBatch, createRowLookup } from "../data/stored-batch.ts";
import { createEncodedTerms, EncodedSettle, type EncodedReserve } from "../data/batch-codec.ts";

/** Instance name for imported data that is not a row of another instance. */
const IMPORT_INSTANCE = "move";

export class LedgerImporter {
  readonly #file: string;
  readonly #partialFile: string;
  readonly #lock: ReturnType<typeof lockLedger>;
  #session: LedgerSession | undefined;
  readonly #open = new Map<string, StoredCall>();
  readonly after: number;

  constructor(file: string) {
    this.#file = file;
    this.#partialFile = partialImportPath(file);
    this.#lock = lockLedger(file);
    try {
      if (existsSync(file))
        fail("conflict", `A ledger already exists at ${file}.`, { code: "not_empty" });
      this.#session = new LedgerSession(
        { file: this.#partialFile, durability: "power", ballastMb: 0 },
        IMPORT_INSTANCE,
        false,
      );
      const { db } = this.#session;
      db.exec("CREATE TABLE IF NOT EXISTS import_position (after INTEGER NOT NULL) STRICT");
      this.after = Number(
        db.prepare("SELECT max(after) AS after FROM import_position").get()?.["after"] ?? 0,
      );
      this.#session.runStep((_, journal) => {
        for (const { call } of journal.openCalls()) this.#open.set(call.attempt, call);
      });
    } catch (error) {
      this.close();
      throw error;
    }
  }

  writeRows({ rows, next }: TransferredRows): void {
    const groups = [...splitByInstance(rows.map(fromMovedRow))];
    // The position is saved with the last group. After a crash, rows that are sent again already
    // exist and are skipped.
    groups.forEach((some, i) =>
      this.#session!.runStep((db, journal) => {
        journal.setInstance(some[0]!.instance);
        for (const row of some) this.#addRow(journal, row);
        if (i < groups.length - 1) return;
        db.exec("DELETE FROM import_position");
        db.prepare("INSERT INTO import_position (after) VALUES (?)").run(next);
      }),
    );
  }

  #addRow(journal: SqliteJournal, row: LedgerRow): void {
    const { attempt, kind } = row;
    if (kind === "adjust") return void journal.adjustImported(row);
    if (kind === "settle") {
      const call = this.#open.get(attempt);
      if (!call) return;
      this.#open.delete(attempt);
      return journal.settle(
        call,
        new EncodedSettle(Math.floor(row.at), attempt, encodeSettleFields(row)),
      );
    }
    if (journal.hasReserve(attempt)) return;
    const line: EncodedReserve = {
      do: "reserve",
      at: Math.floor(row.at),
      attempt,
      claims: [],
      terms: createEncodedTerms(serializeTerms(row)),
      identity: encodeIdentity(row),
      hold: JSON.stringify(encodeAmount(row.holdNano)),
      ...(row.job !== undefined && { job: { attempt: row.job } }),
    };
    this.#open.set(attempt, journal.reserve(line, row.meterAmounts)!);
  }

  async finish(rest: TransferredRemainder) {
    const session = this.#session!;
    this.#writeRemainder(session, rest);
    const totals = readTotals(session.db, COMPARED_TOTALS);
    try {
      assertSameTotals(totals, rest.totals);
    } catch (error) {
      this.#discard();
      throw error;
    }
    const { hash } = readHead(session.db);
    session.db.exec("DROP TABLE import_position");
    session.db.exec("PRAGMA wal_checkpoint(TRUNCATE)");
    session.db.close();
    this.#session = undefined;
    const [problem] = (await verifyLedger(this.#partialFile, undefined)).problems;
    if (problem) {
      this.#discard();
      fail(
        "invalid",
        `The imported ledger failed verification: ${problem.path} ${problem.message}`,
        { code: "other_sums" },
      );
    }
    rmSync(`${this.#partialFile}-wal`, { force: true });
    rmSync(`${this.#partialFile}-shm`, { force: true });
    renameSync(this.#partialFile, this.#file);
    return { head: hash, totals };
  }

  close(): void {
    try {
      this.#session?.db.close();
    } finally {
      this.#session = undefined;
      this.#lock.release();
    }
  }

  /**
   * Deletes the partial import, because its rows cannot be removed individually. The next import
   * starts from the beginning.
   */
  #discard(): void {
    this.#session?.db.close();
    this.#session = undefined;
    for (const name of ["", "-wal", "-shm"]) rmSync(this.#partialFile + name, { force: true });
  }

  #writeRemainder(session: LedgerSession, rest: TransferredRemainder): void {
    for (const [entry, end] of rest.audit) {
      appendAudit(session, entry);
      if (end) appendAudit(session, end);
    }
    session.runStep((db, journal) => {
      journal.setInstance(IMPORT_INSTANCE);
      for (const key of rest.keys) journal.putKey(key);
      for (const account of rest.accounts) journal.accounts.put(account);
      for (const [hash, price] of rest.prices) journal.putPrice(hash, price);
      const meter = db.prepare(
        "INSERT INTO meter (id, level, at, max, notified_level) VALUES (?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE " +
          "SET level = excluded.level, at = excluded.at, max = excluded.max, notified_level = excluded.notified_level",
      );
      for (const { id, level, at, max, notifiedLevel } of rest.meters)
        meter.run(id, String(level), Math.floor(at), String(max), String(notifiedLevel));
      for (const [attempt, usage, costNano] of rest.lastProgress) {
        const call = this.#open.get(attempt);
        if (call) journal.progress(call, { do: "progress", at: 0, attempt, usage, costNano });
      }
      for (const job of rest.jobs ?? []) writeJob(db, job);
    });
    session.runStep((db, journal) => {
      for (const [attempt, { lineAmounts }] of replayRows(db).open) {
        const call = this.#open.get(attempt);
        if (call && lineAmounts) journal.setLineAmounts(call, lineAmounts);
      }
    });
    const at = Date.now();
    if (rest.rollups) this.#addCheckpoint(session, rest.rollups, rest.meters, at);
    session.runStep((_, journal) => {
      journal.appendNote(at, {
        imported: { head: rest.head ?? null, totals: hashText(toJson(rest.totals)) },
      });
    });
  }

  #addCheckpoint(
    session: LedgerSession,
    imported: NonNullable<TransferredRemainder["rollups"]>,
    meters: TransferredRemainder["meters"],
    at: number,
  ): void {
    const { base, rollups, rollupHash } = checkpointOfImport(imported, at);
    session.runStep((db, journal) => {
      const lay = db.prepare(
        "INSERT INTO checkpoint_rollup (n, quarter, text, hash) VALUES (?, ?, ?, ?)",
      );
      for (const rollup of rollups) lay.run(...rollup);
      const checkpoint: Checkpoint = {
        segment: 0,
        last: 0,
        hash: "",
        ...base,
        retainedReserves: [],
        meters: replayRows(db).compactedWindows(meters),
        erasures: [],
      };
      const text = JSON.stringify(checkpoint);
      db.prepare("INSERT INTO checkpoint (id, last, rollups, text) VALUES (1, 0, ?, ?)").run(
        rollups.length,
        text,
      );
      journal.appendNote(at, {
        compacted: { last: 0, checkpoint: hashText(text), rollups: rollupHash },
      });
    });
  }
}

/** Replays the rows that exist. */
function replayRows(db: DatabaseSync): LedgerReplay<undefined> {
  const replay = new LedgerReplay<undefined>();
  const lookup = createRowLookup(db);
  const batches = db.prepare(`SELECT ${BATCH_COLUMNS} FROM batch ORDER BY first`);
  for (const stored of batches.iterate() as Iterable<unknown>)
    for (const row of decodeCommit(stored as StoredBatch))
      if (row.kind === "reserve") replay.reserve(row, undefined);
      else if (row.kind === "settle") replay.settle(row);
      else replay.adjust(row, lookup.findReserve(row.attempt));
  return replay;
}
