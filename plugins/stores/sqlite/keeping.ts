// A ledger's life, from this side of the threads.
import type { Erasure, LedgerKeeping, LedgerState } from "tollgate/plugin";
import type { FoundWords } from "./erasing.ts";
import type { Thread } from "./thread.ts";

/** Hashes that one question names. */
const ASKED = 10_000;

export interface KeepingThreads {
  /** Ends it when the work is done. */
  keeper<T>(work: (thread: Thread) => Promise<T>): Promise<T>;
  /** The one that writes; it is there as long as the store is open. */
  writer(): Promise<{ readonly thread: Thread }>;
  reader(): Promise<{ readonly thread: Thread }>;
}

export function keepingOf({ keeper, writer, reader }: KeepingThreads): LedgerKeeping {
  const asked =
    <N extends "backup" | "restore" | "archive" | "readArchive">(method: N) =>
    (...args: Parameters<Required<LedgerKeeping>[N]>) =>
      keeper((thread) =>
        thread.call<Awaited<ReturnType<Required<LedgerKeeping>[N]>>>(method, ...args),
      );

  /** A step of the writer for some of them at a time, until none is left. */
  async function erased(thread: Thread, what: Erasure): Promise<string[]> {
    const values: string[] = [];
    for (let from = 0; ;) {
      const { hashes, after } = await thread.call<FoundWords>("words", what, from);
      if (hashes.length === 0) return values;
      values.push(...(await (await writer()).thread.call<string[]>("erase", hashes, Date.now())));
      from = after;
    }
  }

  return {
    backup: asked("backup"),
    restore: asked("restore"),
    archive: asked("archive"),
    readArchive: asked("readArchive"),
    state: async () => (await reader()).thread.call<LedgerState>("state"),
    erase: (what) =>
      keeper(async (thread) => {
        if (!("values" in what)) return { values: await erased(thread, what) };
        const values: string[] = [];
        for (let from = 0; from < what.values.length; from += ASKED) {
          const some = what.values.slice(from, from + ASKED);
          values.push(...(await erased(thread, { values: some })));
        }
        return { values };
      }),
  };
}
