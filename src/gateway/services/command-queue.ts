// The commands that wait for their batch, in the order in which they came.
import type { StoreCommand } from "../../plugin/store.ts";
import { hint, isNew, type QueuedCommand, unavailable } from "./queued-command.ts";

type Progress = Extract<StoreCommand, { do: "progress" }>;

/** Commands in one batch. */
const MOST_IN_BATCH = 1_024;

export class CommandQueue {
  #waiting: QueuedCommand[] = [];
  /** The last one of each call: those before it say nothing more. */
  readonly #progress = new Map<string, Progress>();
  /** Refused after a batch with them was rejected. A store whose answer was lost on its way may have them all the same. */
  readonly doubtful: string[] = [];

  get length(): number {
    return this.#waiting.length;
  }
  get isEmpty(): boolean {
    return this.#waiting.length === 0 && this.#progress.size === 0;
  }

  push(command: QueuedCommand): void {
    this.#waiting.push(command);
  }

  hear(progress: Progress): void {
    this.#progress.set(progress.attempt, progress);
  }

  /** A call that is settled makes no progress. */
  settled(attempt: string): void {
    if (this.#progress.size > 0) this.#progress.delete(attempt);
  }

  /** The next batch: mostly all that waits. */
  take(): QueuedCommand[] {
    const taken = this.#taken();
    if (this.#progress.size === 0) return taken;
    const progress = [...this.#progress.values()].map(hint);
    this.#progress.clear();
    return [...progress, ...taken];
  }

  #taken(): QueuedCommand[] {
    if (this.#waiting.length > MOST_IN_BATCH) return this.#waiting.splice(0, MOST_IN_BATCH);
    const all = this.#waiting;
    this.#waiting = [];
    return all;
  }

  /** A batch of what must land, before what may be refused. */
  takeOwed(): QueuedCommand[] {
    const [must, may] = [[] as QueuedCommand[], [] as QueuedCommand[]];
    for (const one of this.#waiting) (isNew(one.command) ? may : must).push(one);
    const batch = must.splice(0, MOST_IN_BATCH);
    this.#waiting = [...must, ...may];
    return batch;
  }

  /** What was in a batch that was rejected and is worth a second try, first of all. */
  putBack(batch: readonly QueuedCommand[]): void {
    for (const one of batch) {
      one.tried = true;
      if (one.abandoned && one.command.do === "reserve") this.doubtful.push(one.command.attempt);
    }
    this.#waiting.unshift(...batch.filter(({ again, abandoned }) => again && !abandoned));
  }

  /** Reserves, for which a client waits, are refused when they have waited this long. */
  refuseLate(healMs: number): void {
    const late = performance.now() - healMs;
    this.#waiting = this.#waiting.filter(({ command, since, reject, tried }) => {
      if (command.do !== "reserve" || since > late) return true;
      if (tried) this.doubtful.push(command.attempt);
      reject(unavailable());
      return false;
    });
  }

  /** How many were given up. */
  refuseAll(): number {
    const lost = this.#waiting.splice(0);
    for (const { reject } of lost) reject(unavailable());
    return lost.length;
  }
}
