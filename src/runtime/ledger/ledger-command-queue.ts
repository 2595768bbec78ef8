// Queues commands until their batch is sent, in order of arrival.
import type { StoreCommand } from "../../plugin/store/store.ts";
import {
  createHint,
  isRefusable,
  type QueuedCommand,
  createUnavailableFault,
} from "./queued-command.ts";

type Progress = Extract<StoreCommand, { do: "progress" }>;

/** Maximum number of commands per batch. */
const MAX_BATCH = 1_024;

export class LedgerCommandQueue {
  #pending: QueuedCommand[] = [];
  /** Latest progress by attempt. Earlier progress of the same attempt is obsolete. */
  readonly #latestProgress = new Map<string, Progress>();
  /**
   * Attempts whose reserves were rejected to the client after a failed batch. A store whose answer
   * was lost may have applied them.
   */
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

  /** Drops the progress of an attempt that was settled. */
  dropProgress(attempt: string): void {
    if (this.#latestProgress.size > 0) this.#latestProgress.delete(attempt);
  }

  /** Takes the next batch, usually everything that is queued. */
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

  /** Takes a batch of commands that must be applied, ahead of those that may be refused. */
  takeMandatory(): QueuedCommand[] {
    const [must, may] = [[] as QueuedCommand[], [] as QueuedCommand[]];
    for (const one of this.#pending) (isRefusable(one.command) ? may : must).push(one);
    const batch = must.splice(0, MAX_BATCH);
    this.#pending = [...must, ...may];
    return batch;
  }

  /** Puts the retryable commands of a rejected batch back at the front. */
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

  /** Rejects reserves that have waited for `healMs` or longer. A client is waiting for them. */
  rejectOverdue(healMs: number): void {
    const oldestAllowed = performance.now() - healMs;
    this.#pending = this.#pending.filter(({ command, queuedAt, reject, wasRejected }) => {
      if (command.do !== "reserve" || queuedAt > oldestAllowed) return true;
      if (wasRejected) this.maybeApplied.push(command.attempt);
      reject(createUnavailableFault());
      return false;
    });
  }

  /** Rejects all queued commands. Returns their number. */
  rejectAll(): number {
    const lost = this.#pending.splice(0);
    for (const { reject } of lost) reject(createUnavailableFault());
    return lost.length;
  }
}
