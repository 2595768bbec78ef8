// A prune from beginning to end, from this side of the threads: what stands for rows is worked out beside the writer, and the writer
// takes one short step after another, with as long a pause in between as the step has taken.
import { setTimeout as sleep } from "node:timers/promises";
import type { Pruned, PruneProgress } from "tollgate/plugin";
import type { Folded, SumsRow } from "./fold.ts";
import type { FoundLeftovers, LeftoversAfter } from "./leftovers.ts";
import type { Swept } from "./pruning.ts";
import type { Thread } from "./thread.ts";

/** Text of sums that one step lays ready, in characters. */
const LAID = 500_000;

export class Prune {
  readonly #keeper: Thread;
  readonly #writer: () => Promise<{ readonly thread: Thread }>;
  readonly #progress: (of: PruneProgress) => void;
  #rows = 0;
  #of = 0;
  #longest = 0;

  constructor(
    keeper: Thread,
    writer: () => Promise<{ readonly thread: Thread }>,
    progress: (of: PruneProgress) => void = () => {},
  ) {
    this.#keeper = keeper;
    this.#writer = writer;
    this.#progress = progress;
  }

  async run(before: number): Promise<Pick<Pruned, "rows" | "longestMs">> {
    // What a run that was cut off has left comes first.
    await this.#ask("discard");
    await this.#sweep(false);
    // What is written from now on is for a later run: this one writes too, and its own entries may be older than `before`.
    for (let newest: number | undefined; ;) {
      const folded = await this.#keeper.call<Folded | undefined>("fold", before, Date.now());
      if (!folded || folded.after >= (newest ??= folded.head)) break;
      await this.#replace(folded);
      await this.#sweep(true);
    }
    await this.#clear();
    await this.#steps("shrink");
    return { rows: this.#rows, longestMs: this.#longest };
  }

  async #replace({ sums, ...rest }: Folded): Promise<void> {
    for (const some of portions(sums)) await this.#paced(() => this.#ask("layReady", some));
    const done = await this.#ask<boolean>("replace", rest, Date.now());
    if (!done) return this.#ask("discard");
    this.#of += rest.last - rest.after;
  }

  async #sweep(mine: boolean): Promise<void> {
    await this.#steps("sweep", ({ rows }) => {
      if (!mine) return;
      this.#rows += rows;
      this.#progress({ rows: this.#rows, of: this.#of });
    });
  }

  async #clear(): Promise<void> {
    let after: LeftoversAfter | undefined = { key: "", chapter: -1, word: 0 };
    while (after) {
      const found: FoundLeftovers = await this.#keeper.call<FoundLeftovers>("leftovers", after);
      const { mentions, words, edge } = found;
      after = found.after;
      if (after) await this.#paced(() => this.#ask("clear", { mentions, words }, edge));
    }
  }

  async #steps(method: "sweep" | "shrink", did: (of: Swept) => void = () => {}): Promise<void> {
    for (let more = true; more;) {
      const swept = await this.#paced(() => this.#ask<Swept>(method));
      did(swept);
      ({ more } = swept);
    }
  }

  async #paced<T>(step: () => Promise<T>): Promise<T> {
    const began = performance.now();
    const done = await step();
    await sleep(Math.min(50, performance.now() - began));
    return done;
  }

  async #ask<T>(method: string, ...args: readonly unknown[]): Promise<T> {
    const { value, ms } = await (
      await this.#writer()
    ).thread.call<{ value: T; ms: number }>("step", method, ...args);
    this.#longest = Math.max(this.#longest, ms);
    return value;
  }
}

function* portions(sums: readonly SumsRow[]): Generator<SumsRow[], void> {
  let some: SumsRow[] = [];
  let length = 0;
  for (const row of sums) {
    some.push(row);
    if ((length += row[2].length) < LAID) continue;
    yield some;
    some = [];
    length = 0;
  }
  if (some.length > 0) yield some;
}
