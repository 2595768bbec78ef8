// Long, infrequent tasks. They run in a thread that exists only for the task, so that neither
// commits nor reports wait.
import { DatabaseSync } from "node:sqlite";
import type { ArchiveRequest, ErasureRequest, PrunePlan } from "tollgate/plugin";
import type { TransferredRemainder, TransferredRows } from "tollgate/plugin";
import { readArchive } from "tollgate/store";
import { archive } from "../transfer/archive.ts";
import { backup, restore } from "../transfer/backup.ts";
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

  backup(to: string) {
    return backup(this.#file, to);
  }

  restore(from: string) {
    return restore(from, this.#file);
  }

  archive(to: string, of: ArchiveRequest) {
    return archive(this.#file, to, of);
  }

  readArchive(file: string) {
    return readArchive(file);
  }

  planCompaction(before: number): PrunePlan {
    return this.#withReadTransaction((db) => planCompaction(db, before));
  }

  /**
   * Builds a checkpoint in one read transaction, so that it sees one state of the data. Returns
   * undefined if nothing can be compacted.
   */
  buildCheckpoint(before: number, at: number): CompactionResult | undefined {
    return this.#withReadTransaction((db) => {
      db.exec("BEGIN");
      return buildCheckpoint(db, before, at);
    });
  }

  /** Returns the next page of data that only compacted rows used. */
  findLeftovers(after: LeftoversCursor): FoundLeftovers {
    return this.#withReadTransaction((db) => findLeftovers(db, after));
  }

  /** Returns the next page of matching texts that still exist. */
  findTexts(what: ErasureRequest, after: number): FoundTexts {
    return this.#withReadTransaction((db) => findTexts(db, what, after));
  }

  #withReadTransaction<T>(work: (db: DatabaseSync) => T): T {
    const db = new DatabaseSync(this.#file, { readOnly: true, timeout: 1_000 });
    try {
      return work(db);
    } finally {
      db.close();
    }
  }

  beginExport(): void {
    this.#export = new LedgerExporter(this.#file);
  }

  exportRows(after: number): TransferredRows {
    return this.#export!.readRows(after);
  }

  stopWritesForExport(): void {
    this.#export!.stopWrites();
  }

  exportRemainder(): TransferredRemainder {
    return this.#export!.readRemainder();
  }

  /** Opens the import and returns the position after which rows are missing. */
  beginImport(): number {
    return (this.#import = new LedgerImporter(this.#file)).after;
  }

  importRows(rows: TransferredRows): void {
    this.#import!.writeRows(rows);
  }

  finishImport(rest: TransferredRemainder) {
    return this.#import!.finish(rest);
  }

  close(): void {
    this.#export?.close();
    this.#import?.close();
  }
}
