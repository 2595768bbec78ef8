// Long, infrequent tasks. They run in a thread that exists only for the task, so that commits and
// reports do not wait.
import { DatabaseSync } from "node:sqlite";
import type { ArchiveRequest, ErasureRequest, PrunePlan } from "tollgate/plugin";
import type { TransferredRemainder, TransferredRows } from "tollgate/plugin";
import { readArchive } from "tollgate/store";
import { archive, backup, restore } from "../transfer/backup.ts";
import { type FoundTexts, findTexts } from "../retention/erasure.ts";
import { LedgerImporter } from "../transfer/import.ts";
import { buildCheckpoint, type CompactionResult, planCompaction } from "../retention/compaction.ts";
import { LedgerExporter } from "../transfer/export.ts";
import {
  type FoundLeftovers,
  findLeftovers,
  type LeftoversCursor,
} from "../retention/leftovers.ts";

export class LongTasks {
  readonly #file: string;
  #export: LedgerExporter | undefined;
  #import: LedgerImporter | undefined;

  constructor({ file }: { file: string }) {
    this.#file = file;
  }

  backup = (to: string) => backup(this.#file, to);
  restore = (from: string) => restore(from, this.#file);
  archive = (to: string, of: ArchiveRequest) => archive(this.#file, to, of);
  readArchive = (file: string) => readArchive(file);

  planCompaction = (before: number): PrunePlan => this.#read((db) => planCompaction(db, before));

  /** Builds a checkpoint. Returns undefined if no rows can be compacted. */
  buildCheckpoint = (before: number, at: number): CompactionResult | undefined =>
    this.#read((db) => buildCheckpoint(db, before, at));

  /** Returns the next page of data that only compacted rows used. */
  findLeftovers = (after: LeftoversCursor): FoundLeftovers =>
    this.#read((db) => findLeftovers(db, after));

  /** Returns the next page of matching texts that still exist. */
  findTexts = (what: ErasureRequest, after: number): FoundTexts =>
    this.#read((db) => findTexts(db, what, after));

  beginExport = (): void => void (this.#export = new LedgerExporter(this.#file));
  exportRows = (after: number): TransferredRows => this.#export!.readRows(after);
  stopWritesForExport = (): void => this.#export!.stopWrites();
  exportRemainder = (): TransferredRemainder => this.#export!.readRemainder();

  /** Opens the import and returns the position after which rows are missing. */
  beginImport = (): number => (this.#import = new LedgerImporter(this.#file)).after;
  importRows = (rows: TransferredRows): void => this.#import!.writeRows(rows);
  finishImport = (rest: TransferredRemainder) => this.#import!.finish(rest);

  close(): void {
    this.#export?.close();
    this.#import?.close();
  }

  /** Reads in one transaction, which sees one snapshot of the data. */
  #read<T>(work: (db: DatabaseSync) => T): T {
    const db = new DatabaseSync(this.#file, { readOnly: true, timeout: 1_000 });
    try {
      db.exec("BEGIN");
      return work(db);
    } finally {
      db.close();
    }
  }
}
