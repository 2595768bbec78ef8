// A ledger's life, from this side of the threads.
import {
  type Erasure,
  fail,
  type LedgerKeeping,
  type LedgerState,
  type PrunePlan,
  type Pruned,
  type PruneProgress,
} from "tollgate/plugin";
import type { FoundWords } from "./erasing.ts";
import { Prune } from "./prune.ts";
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

  let under: Promise<Pruned> | undefined;
  function once(work: () => Promise<Pruned>): Promise<Pruned> {
    if (under)
      return fail("conflict", "Rows are being pruned already.", { code: "prune_under_way" });
    return (under = work().finally(() => (under = undefined)));
  }
  const state = async () => (await reader()).thread.call<LedgerState>("state");
  async function pruned(
    before: number,
    progress: ((of: PruneProgress) => void) | undefined,
  ): Promise<Pruned> {
    const room = (await state()).bytes;
    const done = await keeper((thread) => new Prune(thread, writer, progress).run(before));
    // Reports are told from sums again by the time that it is over.
    await (await reader()).thread.call("sum");
    const { bytes, oldest } = await state();
    return { ...done, bytes: Math.max(0, room - bytes), since: oldest };
  }

  return {
    backup: asked("backup"),
    restore: asked("restore"),
    archive: asked("archive"),
    readArchive: asked("readArchive"),
    plan: (before) => keeper((thread) => thread.call<PrunePlan>("plan", before)),
    prune: (before, progress) => once(() => pruned(before, progress)),
    state,
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
