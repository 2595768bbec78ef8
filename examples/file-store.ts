// examples/file-store.ts
// Keeps the ledger in one file, one batch per line. At the start, all batches are applied again. The ledger rules do the metering.
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
import * as ledger from "tollgate/store";

export default defineStore({
  api: 1,
  name: "file-store",
  summary: "Keeps keys and the ledger in one file, one batch per line",
  options: {
    type: "object",
    additionalProperties: false,
    properties: {
      file: {
        type: "string",
        minLength: 1,
        default: "ledger.jsonl",
        description: "The file. A relative path starts in the store's folder in state_dir",
      },
    },
  },
  setup({ file }, ctx) {
    // The state directory belongs to one gateway, so no other process writes the file.
    const store = fileStore(() => (isAbsolute(file) ? file : join(ctx.stateDir(), file)));
    ctx.onDispose(store.close);
    return store.store;
  },
});

interface Line {
  readonly instance: string;
  readonly batch: readonly StoreCommand[];
  /** Set if an instance has opened the store. The batch settles the calls that it recovers. */
  readonly opened?: true;
}

function fileStore(path: () => string): { store: Store; close: () => void } {
  let writer = "";
  const journal = ledger.createMemoryJournal(() => writer);
  const rules = ledger.createLedgerRules(journal, () => writer);
  let file: number | undefined;
  let length = 0;
  let epoch = 0;

  /** Applies the whole batch or nothing. `persist` makes it durable. */
  function apply({ instance, batch, opened }: Line, persist: () => void) {
    writer = instance;
    if (opened) epoch++;
    try {
      const results = batch.map((command) => rules.apply(command));
      persist();
      rules.commit();
      journal.commit();
      rules.dropIdleMeters();
      return results;
    } catch (error) {
      rules.rollback();
      journal.rollback();
      throw error;
    }
  }

  function write(line: Line): void {
    const text = Buffer.from(`${ledger.toJson(line)}\n`);
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

  /** A last line without a line feed is a batch that was never acknowledged, so it is removed. */
  function read(): void {
    const text = readFileSync(file!);
    length = text.lastIndexOf("\n") + 1;
    ftruncateSync(file!, length);
    for (const line of text.subarray(0, length).toString().split("\n"))
      if (line !== "") apply(ledger.fromJson<Line>(line), () => {});
  }

  const store: Store = {
    async open({ instance }) {
      if (file === undefined) {
        file = openSync(path(), constants.O_RDWR | constants.O_CREAT, 0o600);
        read();
      }
      const dead = [...rules.openCalls.values()].filter(({ row }) => row.instance !== instance);
      const at = ledger.recoveryTime(dead, Date.now());
      const batch = dead.map(({ row, progress }) => ledger.recoveredSettle(row, progress, at));
      const line: Line = { instance, batch, opened: true };
      apply(line, () => write(line));
      return { epoch, recovered: batch.length };
    },
    async apply(commands) {
      if (file === undefined) throw new Error("The store is not open.");
      commands.forEach(ledger.checkCommand);
      const line: Line = { instance: writer, batch: structuredClone(commands) };
      // A batch of heartbeats contains nothing to store.
      const changes = commands.some(({ do: kind }) => kind !== "heartbeat");
      return apply(line, () => (changes ? write(line) : undefined));
    },
    readLimits: async (limits, at) => rules.limitUsage(limits, at),
    ...ledger.createJournalReads(journal),
  };
  return {
    store,
    close: () => {
      if (file !== undefined) closeSync(file);
      file = undefined;
    },
  };
}
