// examples/file-store.ts
// A ledger in one file, a batch a line: what was applied once is applied again at the start. The book does all the metering.
import {
  closeSync,
  constants,
  fsyncSync,
  ftruncateSync,
  openSync,
  readFileSync,
  writeSync,
} from "node:fs";
import { isAbsolute, join } from "node:path";
import { defineStore, type Store, type StoreCommand } from "tollgate/plugin";
import * as book from "tollgate/store";

export default defineStore({
  api: 1,
  name: "file-store",
  summary: "Keeps the ledger in one file, a batch a line",
  options: {
    type: "object",
    additionalProperties: false,
    properties: {
      file: {
        type: "string",
        minLength: 1,
        default: "ledger.jsonl",
        description: "The file; a relative path begins in the store's own folder under state_dir",
      },
    },
  },
  setup({ file }, ctx) {
    // The state folder belongs to one gateway, and so does what lies in it.
    const store = fileStore(() => (isAbsolute(file) ? file : join(ctx.stateDir(), file)));
    ctx.onDispose(store.close);
    return store.store;
  },
});

interface Line {
  readonly instance: string;
  readonly batch: readonly StoreCommand[];
  /** An instance begins, with what it recovers. */
  readonly opened?: true;
}

function fileStore(path: () => string): { store: Store; close: () => void } {
  let writer = "";
  const journal = book.createMemoryJournal(() => writer);
  const rules = book.createLedgerRules(journal, () => writer);
  let file: number | undefined;
  let length = 0;
  let epoch = 0;

  /** All of it or nothing, and `keep` is the moment from which it is durable. */
  function apply({ instance, batch, opened }: Line, keep: () => void) {
    writer = instance;
    if (opened) epoch++;
    try {
      const verdicts = batch.map((command) => rules.apply(command));
      keep();
      rules.commit();
      journal.commit();
      rules.dropIdleMeters();
      return verdicts;
    } catch (error) {
      rules.rollback();
      journal.rollback();
      throw error;
    }
  }

  function write(line: Line): void {
    const text = Buffer.from(`${book.toJson(line)}\n`);
    try {
      for (let at = 0; at < text.length;)
        at += writeSync(file!, text, at, text.length - at, length + at);
      fsyncSync(file!);
    } catch (error) {
      ftruncateSync(file!, length);
      throw error;
    }
    length += text.length;
  }

  /** A last line without its end is a batch that was never acknowledged. */
  function read(): void {
    const text = readFileSync(file!);
    length = text.lastIndexOf("\n") + 1;
    ftruncateSync(file!, length);
    for (const line of text.subarray(0, length).toString().split("\n"))
      if (line !== "") apply(book.fromJson<Line>(line), () => {});
  }

  const store: Store = {
    async open({ instance }) {
      if (file === undefined) {
        file = openSync(path(), constants.O_RDWR | constants.O_CREAT, 0o600);
        read();
      }
      const dead = [...rules.openCalls.values()].filter(({ row }) => row.instance !== instance);
      const at = book.recoveryTime(dead, Date.now());
      const batch = dead.map(({ row, progress }) => book.recoveredSettle(row, progress, at));
      const line: Line = { instance, batch, opened: true };
      apply(line, () => write(line));
      return { epoch, recovered: batch.length };
    },
    async apply(commands) {
      if (file === undefined) throw new Error("The store is not open.");
      commands.forEach(book.checkCommand);
      const line: Line = { instance: writer, batch: structuredClone(commands) };
      // A sign of life alone is nothing to keep.
      const said = commands.some(({ do: kind }) => kind !== "heartbeat");
      return apply(line, () => (said ? write(line) : undefined));
    },
    readLimits: async (limits, at) => rules.limitUsage(limits, at),
    ...book.createJournalReads(journal),
  };
  return {
    store,
    close: () => {
      if (file !== undefined) closeSync(file);
      file = undefined;
    },
  };
}
