// Runs a compaction from the main thread. The checkpoint is built outside the writer. The writer
// executes short steps, with a pause after each step as long as the step, up to 50 ms.
import { setTimeout as sleep } from "node:timers/promises";
import type { PruneResult, PruneProgress } from "tollgate/plugin";
import type { CheckpointRollup } from "tollgate/store";
import type { CompactionResult } from "../retention/compaction.ts";
import type { FoundLeftovers, LeftoversCursor } from "../retention/leftovers.ts";
import type { StepResult } from "../retention/compaction-steps.ts";
import { type StepMethod, type Writer, type StepArgs, type StepValue } from "../write/writer.ts";
import type { LongTasks } from "./long-tasks.ts";
import type { WorkerThread } from "./thread.ts";

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
    // Entries written from now on are left to a later run. This run also writes entries, and they
    // may be older than `before`.
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
