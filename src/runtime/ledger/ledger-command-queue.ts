// The commands that wait for their batch, in the order in which they came.
import type { StoreCommand } from "../../plugin/store/store.ts";
import {
  createHint,
  isRefusable,
  type QueuedCommand,
  createUnavailableFault,
} from "./queued-command.ts";

type Progress = Extract<StoreCommand, { do: "progress" }>;

/** Commands in one batch. */
const MAX_BATCH = 1_024;

export class LedgerCommandQueue {
  #pending: QueuedCommand[] = [];
  /** The last one of each call: those before it say nothing more. */
  readonly #latestProgress = new Map<string, Progress>();
  /** Refused after a batch with them was rejected. A store whose answer was lost on its way may have them all the same. */
  readonly maybeApplied: string[] = [];

  get length(): number {
    return this.#pending.length;
  }
  get isEmpty(): boolean {
    return this.#pending.length === 0 && this.#latestProgress.size === 0;
  }

  push(command: QueuedCommand): void {
    this.#pending.push(command);
  }

  recordProgress(progress: Progress): void {
    this.#latestProgress.set(progress.attempt, progress);
  }

  /** A call that is settled makes no progress. */
  dropProgress(attempt: string): void {
    if (this.#latestProgress.size > 0) this.#latestProgress.delete(attempt);
  }

  /** The next batch: mostly all that waits. */
  takeBatch(): QueuedCommand[] {
    const batch = this.#takePending();
    if (this.#latestProgress.size === 0) return batch;
    const progress = [...this.#latestProgress.values()].map(createHint);
    this.#latestProgress.clear();
    return [...progress, ...batch];
  }

  #takePending(): QueuedCommand[] {
    if (this.#pending.length > MAX_BATCH) return this.#pending.splice(0, MAX_BATCH);
    const all = this.#pending;
    this.#pending = [];
    return all;
  }

  /** A batch of what must land, before what may be refused. */
  takeMandatory(): QueuedCommand[] {
    const [must, may] = [[] as QueuedCommand[], [] as QueuedCommand[]];
    for (const one of this.#pending) (isRefusable(one.command) ? may : must).push(one);
    const batch = must.splice(0, MAX_BATCH);
    this.#pending = [...must, ...may];
    return batch;
  }

  /** What was in a batch that was rejected and is worth a second try, first of all. */
  putBack(batch: readonly QueuedCommand[]): void {
    for (const one of batch) {
      one.wasRejected = true;
      if (one.isAbandoned && one.command.do === "reserve")
        this.maybeApplied.push(one.command.attempt);
    }
    this.#pending.unshift(
      ...batch.filter(({ isRetryable, isAbandoned }) => isRetryable && !isAbandoned),
    );
  }

  /** Reserves, for which a client waits, are refused when they have waited this long. */
  rejectOverdue(healMs: number): void {
    const oldestAllowed = performance.now() - healMs;
    this.#pending = this.#pending.filter(({ command, queuedAt, reject, wasRejected }) => {
      if (command.do !== "reserve" || queuedAt > oldestAllowed) return true;
      if (wasRejected) this.maybeApplied.push(command.attempt);
      reject(createUnavailableFault());
      return false;
    });
  }

  /** How many were given up. */
  rejectAll(): number {
    const lost = this.#pending.splice(0);
    for (const { reject } of lost) reject(createUnavailableFault());
    return lost.length;
  }
}
