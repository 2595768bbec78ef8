// What takes long and is asked for seldom: it has a thread of its own while it lasts, so that neither commits nor reports wait for it.
import { DatabaseSync } from "node:sqlite";
import type { ArchiveRequest, Erasure, PrunePlan } from "tollgate/plugin";
import type { MovedRest, MovedRows } from "tollgate/plugin";
import { archive, readArchive } from "./archive.ts";
import { backup, restore } from "./copy.ts";
import { type FoundWords, wordsOf } from "./erasing.ts";
import { Arriving } from "./arriving.ts";
import { fold, type Folded, planOf } from "./fold.ts";
import { Leaving } from "./leaving.ts";
import { type FoundLeftovers, leftoversOf, type LeftoversAfter } from "./leftovers.ts";

export class Keeper {
  readonly #file: string;
  #leaving: Leaving | undefined;
  #arriving: Arriving | undefined;

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

  plan(before: number): PrunePlan {
    return this.#reading((db) => planOf(db, before));
  }

  /** In one reading, so that nothing changes meanwhile. Undefined: nothing may go. */
  fold(before: number, at: number): Folded | undefined {
    return this.#reading((db) => {
      db.exec("BEGIN");
      return fold(db, before, at);
    });
  }

  /** Some of what only rows said that are gone, behind what was found before. */
  leftovers(after: LeftoversAfter): FoundLeftovers {
    return this.#reading((db) => leftoversOf(db, after));
  }

  /** Some of those that are there still. */
  words(what: Erasure, after: number): FoundWords {
    return this.#reading((db) => wordsOf(db, what, after));
  }

  #reading<T>(work: (db: DatabaseSync) => T): T {
    const db = new DatabaseSync(this.#file, { readOnly: true, timeout: 1_000 });
    try {
      return work(db);
    } finally {
      db.close();
    }
  }

  leave(): void {
    this.#leaving = new Leaving(this.#file);
  }

  leavingRows(after: number): MovedRows {
    return this.#leaving!.rows(after);
  }

  quiet(): void {
    this.#leaving!.quiet();
  }

  rest(): MovedRest {
    return this.#leaving!.rest();
  }

  /** The place behind which rows are missing. */
  arrive(): number {
    return (this.#arriving = new Arriving(this.#file)).after;
  }

  takeRows(rows: MovedRows): void {
    this.#arriving!.take(rows);
  }

  finish(rest: MovedRest) {
    return this.#arriving!.finish(rest);
  }

  close(): void {
    this.#leaving?.end();
    this.#arriving?.end();
  }
}
