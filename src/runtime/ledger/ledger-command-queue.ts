// Queues commands until their batch is sent, in order of arrival.
import { BoundedQueue } from "../../lib/queue/bounded-queue.ts";
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
/** Number of queued commands from which reserves are rejected. Settles are always accepted. */
const MAX_WAITING = 20_000;

export class LedgerCommandQueue {
  readonly #pending = new BoundedQueue<QueuedCommand>({ maxItems: MAX_WAITING, overflow: "wait" });
  /** Latest progress by attempt. Earlier progress of the same attempt is obsolete. */
  readonly #latestProgress = new Map<string, Progress>();
  /**
   * Attempts whose reserves were rejected after a failed batch. The store may have applied them
   * without its response arriving.
   */
  readonly maybeApplied: string[] = [];

  /** Number of commands, and of attempts with new progress. */
  get length(): number {
    return this.#pending.length + this.#latestProgress.size;
  }
  get commandCount(): number {
    return this.#pending.length;
  }
  get isFull(): boolean {
    return this.#pending.isFull;
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
    const batch = this.#pending.take(MAX_BATCH);
    if (this.#latestProgress.size === 0) return batch;
    const progress = [...this.#latestProgress.values()].map(createHint);
    this.#latestProgress.clear();
    return [...progress, ...batch];
  }

  /** Takes a batch of commands that must be applied, ahead of those that may be refused. */
  takeMandatory(): QueuedCommand[] {
    const must = this.#pending.remove(({ command }) => !isRefusable(command));
    const batch = must.splice(0, MAX_BATCH);
    this.#pending.putBack(must);
    return batch;
  }

  /** Puts the retryable commands of a rejected batch back at the front. */
  putBack(batch: readonly QueuedCommand[]): void {
    for (const one of batch) {
      one.wasRejected = true;
      if (one.isAbandoned && one.command.do === "reserve")
        this.maybeApplied.push(one.command.attempt);
    }
    this.#pending.putBack(
      batch.filter(({ isRetryable, isAbandoned }) => isRetryable && !isAbandoned),
    );
  }

  /** Rejects reserves that have waited for `healMs` or longer. A client is waiting for them. */
  rejectOverdue(healMs: number): void {
    const oldestAllowed = performance.now() - healMs;
    const overdue = this.#pending.remove(
      ({ command, queuedAt }) => command.do === "reserve" && queuedAt <= oldestAllowed,
    );
    for (const { command, reject, wasRejected } of overdue) {
      if (wasRejected && command.do === "reserve") this.maybeApplied.push(command.attempt);
      reject(createUnavailableFault());
    }
  }

  /** Rejects all queued commands. Returns their number. */
  rejectAll(): number {
    const lost = this.#pending.take();
    for (const { reject } of lost) reject(createUnavailableFault());
    return lost.length;
  }
}
