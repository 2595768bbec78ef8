// A database whose disk is full still takes a sign of life: where a row was refused a moment ago that says nothing, and a host that believed it would take calls and
// refuse them by turns.
import { isResourceExhausted } from "../connection/errors.ts";

/** For so long; a host is served again as soon after there is room. */
const LATCH_MS = 2_000;

export class DiskFullLatch {
  #lastError: unknown;
  #until = 0;

  /** What was asked has failed with this. */
  recordError(error: unknown): void {
    if (!isResourceExhausted(error) || error === this.#lastError) return;
    this.#lastError = error;
    this.#until = performance.now() + LATCH_MS;
  }

  /** Throws what was heard a moment ago. */
  throwIfFull(): void {
    if (performance.now() < this.#until) throw this.#lastError;
  }
}
