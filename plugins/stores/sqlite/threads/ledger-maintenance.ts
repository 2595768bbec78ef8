// Ledger maintenance, called from the main thread: backup, archive, compaction, and erasure.
import type {
  ErasureRequest,
  LedgerMaintenance,
  LedgerTransfer,
  LedgerImport,
  LedgerExport,
  PruneResult,
  PruneProgress,
} from "tollgate/plugin";
import { createPrune, type CheckpointRollup } from "tollgate/store";
import type { Reader } from "../read/reader.ts";
import type { Writer, StepMethod, StepArgs, StepValue } from "../write/writer.ts";
import type { LongTasks } from "./long-tasks.ts";
import type { MethodArgs, MethodResult, WorkerThread } from "./thread.ts";
import { setTimeout as sleep } from "node:timers/promises";
import type { CompactionResult } from "../retention/compaction.ts";
import type { FoundLeftovers, LeftoversCursor } from "../retention/leftovers.ts";
import type { StepResult } from "../retention/compaction-steps.ts";

/** Maximum number of hashes per call to a thread. */
const HASHES_PER_CALL = 10_000;

export interface MaintenanceThreads {
  /** Starts a thread for long tasks and ends it when the work is done. */
  withLongTasks<T>(work: (thread: WorkerThread<LongTasks>) => Promise<T>): Promise<T>;
  /** Returns the writer thread, which lives as long as the store is open. */
  writer(): Promise<{ readonly thread: WorkerThread<Writer> }>;
  reader(): Promise<{ readonly thread: WorkerThread<Reader> }>;
}

export function createLedgerMaintenance({
  withLongTasks,
  writer,
  reader,
}: MaintenanceThreads): LedgerMaintenance {
  const callLongTask =
    <M extends "backup" | "restore" | "archive" | "readArchive">(method: M) =>
    (...args: MethodArgs<LongTasks, M>): Promise<MethodResult<LongTasks, M>> =>
      withLongTasks((thread) => thread.call(method, ...args));

  /** Erases texts in steps of the writer until all texts are erased. Returns the erased hashes. */
  async function erased(thread: WorkerThread<LongTasks>, what: ErasureRequest): Promise<string[]> {
    const values: string[] = [];
    for (let from = 0; ;) {
      const { hashes, after } = await thread.call("findTexts", what, from);
      if (hashes.length === 0) return values;
      values.push(...(await (await writer()).thread.call("erase", hashes, Date.now())));
      from = after;
    }
  }

  const readState = async () => (await reader()).thread.call("readState");
  const prune = createPrune(readState, async (before, progress) => {
    const done = await withLongTasks((thread) =>
      new CompactionRun(thread, writer, progress).run(before),
    );
    // Reports can use rollups again when the compaction returns.
    await (await reader()).thread.call("updateRollups");
    return done;
  });

  return {
    backup: callLongTask("backup"),
    restore: callLongTask("restore"),
    archive: callLongTask("archive"),
    readArchive: callLongTask("readArchive"),
    planPrune: (before) => withLongTasks((thread) => thread.call("planCompaction", before)),
    prune,
    readState,
    erase: (what) =>
      withLongTasks(async (thread) => {
        if (!("hashes" in what)) return { hashes: await erased(thread, what) };
        const values: string[] = [];
        for (let from = 0; from < what.hashes.length; from += HASHES_PER_CALL) {
          const some = what.hashes.slice(from, from + HASHES_PER_CALL);
          values.push(...(await erased(thread, { hashes: some })));
        }
        return { hashes: values };
      }),
  };
}

// Exports and imports a ledger from the main thread. Each transfer has its own thread.

/**
 * @param start Starts a thread for long tasks.
 */
export const createTransfer = (start: () => Promise<WorkerThread<LongTasks>>): LedgerTransfer => ({
  async openExport(): Promise<LedgerExport> {
    const thread = await start();
    const end = closeThread(thread);
    await thread
      .call("beginExport")
      .catch((error: unknown) => end().then(() => Promise.reject(error)));
    return {
      readRows: (after) => thread.call("exportRows", after),
      stopWrites: () => thread.call("stopWritesForExport"),
      readRemainder: () => thread.call("exportRemainder"),
      [Symbol.asyncDispose]: end,
    };
  },
  async openImport(): Promise<LedgerImport> {
    const thread = await start();
    const end = closeThread(thread);
    const after = await thread
      .call("beginImport")
      .catch((error: unknown) => end().then(() => Promise.reject(error)));
    return {
      after,
      writeRows: (rows) => thread.call("importRows", rows),
      finish: (rest) => thread.call("finishImport", rest),
      [Symbol.asyncDispose]: end,
    };
  },
});

const closeThread = (thread: WorkerThread<LongTasks>) => async (): Promise<void> => {
  await thread.close().catch(() => undefined);
  await thread.kill();
};

// Runs a compaction from the main thread. The checkpoint is built outside the writer. The writer
// executes short steps, with a pause after each step as long as the step, up to 50 ms.

/** Maximum text of the rollups that one step stages, in characters. */
const STAGED_CHARACTERS = 500_000;

export class CompactionRun {
  readonly #longTasks: WorkerThread<LongTasks>;
  readonly #writer: () => Promise<{ readonly thread: WorkerThread<Writer> }>;
  readonly #progress: (of: PruneProgress) => void;
  #rows = 0;
  #totalRows = 0;
  #longestMs = 0;

  constructor(
    longTasks: WorkerThread<LongTasks>,
    writer: () => Promise<{ readonly thread: WorkerThread<Writer> }>,
    progress: (of: PruneProgress) => void = () => {},
  ) {
    this.#longTasks = longTasks;
    this.#writer = writer;
    this.#progress = progress;
  }

  async run(before: number): Promise<Pick<PruneResult, "rows" | "longestStepMs">> {
    // Cleans up after an interrupted run.
    await this.#callWriter("discardStaged");
    await this.#deleteRows(false);
    // Entries that are written from now on are processed by a later run. This run also writes
    // entries, and they may be older than `before`.
    for (let newest: number | undefined; ;) {
      const folded = await this.#longTasks.call("buildCheckpoint", before, Date.now());
      if (!folded || folded.after >= (newest ??= folded.head)) break;
      await this.#replace(folded);
      await this.#deleteRows(true);
    }
    await this.#clearLeftovers();
    await this.#runSteps("freePages");
    return { rows: this.#rows, longestStepMs: this.#longestMs };
  }

  async #replace({ rollups, ...rest }: CompactionResult): Promise<void> {
    for (const some of splitBySize(rollups))
      await this.#runPaced(() => this.#callWriter("stageRollups", some));
    const done = await this.#callWriter("applyCheckpoint", rest, Date.now());
    if (!done) return this.#callWriter("discardStaged");
    this.#totalRows += rest.last - rest.after;
  }

  async #deleteRows(mine: boolean): Promise<void> {
    await this.#runSteps("deleteCompacted", ({ rows }) => {
      if (!mine) return;
      this.#rows += rows;
      this.#progress({ rows: this.#rows, total: this.#totalRows });
    });
  }

  async #clearLeftovers(): Promise<void> {
    let after: LeftoversCursor | undefined = { key: "", chapter: -1, textId: 0 };
    while (after) {
      const found: FoundLeftovers = await this.#longTasks.call("findLeftovers", after);
      const { keyChapters, textHashes, firstChapter } = found;
      after = found.after;
      if (after)
        await this.#runPaced(() =>
          this.#callWriter("clearLeftovers", { keyChapters, textHashes }, firstChapter),
        );
    }
  }

  async #runSteps(
    method: "deleteCompacted" | "freePages",
    did: (of: StepResult) => void = () => {},
  ): Promise<void> {
    for (let more = true; more;) {
      const swept = await this.#runPaced(() => this.#callWriter(method));
      did(swept);
      ({ hasMore: more } = swept);
    }
  }

  async #runPaced<T>(step: () => Promise<T>): Promise<T> {
    const began = performance.now();
    const done = await step();
    await sleep(Math.min(50, performance.now() - began));
    return done;
  }

  async #callWriter<M extends StepMethod>(method: M, ...args: StepArgs<M>): Promise<StepValue<M>> {
    const { thread } = await this.#writer();
    const { value, ms } = await thread.call("runStep", method, ...args);
    this.#longestMs = Math.max(this.#longestMs, ms);
    return value as StepValue<M>;
  }
}

function* splitBySize(sums: readonly CheckpointRollup[]): Generator<CheckpointRollup[], void> {
  let some: CheckpointRollup[] = [];
  let length = 0;
  for (const row of sums) {
    some.push(row);
    if ((length += row[2].length) < STAGED_CHARACTERS) continue;
    yield some;
    some = [];
    length = 0;
  }
  if (some.length > 0) yield some;
}
