// What takes long and is asked for seldom: it has a thread of its own while it lasts, so that neither commits nor reports wait for it.
import { DatabaseSync } from "node:sqlite";
import type { ArchiveRequest, Erasure } from "tollgate/plugin";
import { archive, readArchive } from "./archive.ts";
import { backup, restore } from "./copy.ts";
import { type FoundWords, wordsOf } from "./erasing.ts";

export class Keeper {
  readonly #file: string;

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

  /** Some of those that are there still. */
  words(what: Erasure, after: number): FoundWords {
    const db = new DatabaseSync(this.#file, { readOnly: true, timeout: 1_000 });
    try {
      return wordsOf(db, what, after);
    } finally {
      db.close();
    }
  }

  close(): void {}
}
