// Leases records of one kind when they are due, and processes each. Every process of a gateway has
// a loop for each kind, and another gateway leases the records of one that stopped.
import { randomBytes } from "node:crypto";
import type { Context, JobRecord, JobStore } from "tollgate/plugin";

/** Longest sleep in milliseconds. Records of other gateways may become due. */
const MAX_SLEEP_MS = 60_000;
/** Shortest time between two reads of the store, in milliseconds. */
const MIN_SLEEP_MS = 50;

/** Factor by which the time between two polls of a provider grows. */
const POLL_GROWTH = 1.5;

/** Returns the time between the next two polls, in milliseconds. */
export const nextPollMs = (ms: number, most: number): number =>
  Math.min(most, Math.round(ms * POLL_GROWTH));

/** Returns the time until a step that failed is repeated, in milliseconds. */
export const backoffMs = (failures: number, most: number): number =>
  Math.min(most, 250 * 2 ** Math.min(failures, 12));

export interface LeaseLoopOptions {
  readonly ctx: Context;
  readonly jobs: () => JobStore;
  readonly kind: string;
  readonly leaseMs: number;
  /** Number of records that the loop processes at the same time. */
  readonly concurrent: number;
  readonly run: (record: JobRecord) => Promise<void>;
  /** Reports an error of the store. The loop tries again after its longest sleep. */
  readonly onPaused: (err: unknown) => void;
}

export class LeaseLoop {
  readonly #of: LeaseLoopOptions;
  /** Name of this loop in leases. */
  readonly #name = randomBytes(9).toString("base64url");
  readonly #running = new Set<Promise<void>>();
  #timer: NodeJS.Timeout | undefined;
  /** Time at which the timer fires, or at which the store is read again after the current read. */
  #wakeAt = Infinity;
  #isReading = false;
  #isStopped = false;

  constructor(of: LeaseLoopOptions) {
    this.#of = of;
  }

  /** Starts after the gateway has started, and ends with the plugin. */
  start(): void {
    const { ctx } = this.#of;
    this.wake(Date.now() + MIN_SLEEP_MS);
    const stop = () => {
      this.#isStopped = true;
      clearTimeout(this.#timer);
    };
    ctx.signal.addEventListener("abort", stop, { once: true });
    ctx.onDispose(async () => {
      stop();
      await Promise.all(this.#running);
    });
  }

  /** Reads the store at this time, or earlier if an earlier time is set. */
  wake = (at = Date.now()): void => {
    if (at >= this.#wakeAt) return;
    this.#wakeAt = at;
    if (!this.#isReading) this.#setTimer(at);
  };

  #setTimer(at: number): void {
    clearTimeout(this.#timer);
    if (this.#isStopped) return;
    this.#timer = setTimeout(() => void this.#read(), Math.max(0, at - Date.now())).unref();
  }

  /** Starts to process each record that is due. */
  async #read(): Promise<void> {
    const { jobs, kind, leaseMs, concurrent } = this.#of;
    this.#isReading = true;
    this.#wakeAt = Date.now() + MAX_SLEEP_MS;
    try {
      while (!this.#isStopped && this.#running.size < concurrent) {
        const next = await jobs().nextDueAt([kind]);
        const at = Date.now();
        if (next === undefined || next > at) {
          this.#wakeAt = Math.min(this.#wakeAt, next ?? Infinity);
          break;
        }
        const lease = { at, owner: this.#name, leaseMs, limit: 1, kinds: [kind] };
        const [record] = await jobs().lease(lease);
        if (!record) break;
        this.#start(record);
      }
    } catch (err) {
      this.#of.onPaused(err);
    } finally {
      this.#isReading = false;
      this.#wakeAt = Math.max(this.#wakeAt, Date.now() + MIN_SLEEP_MS);
      this.#setTimer(this.#wakeAt);
    }
  }

  #start(record: JobRecord): void {
    const work: Promise<void> = this.#of
      .run(record)
      .catch(this.#of.onPaused)
      .finally(() => {
        this.#running.delete(work);
        this.wake();
      });
    this.#running.add(work);
  }
}
