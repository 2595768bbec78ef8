// A database whose disk is full still takes a sign of life: where a row was refused a moment ago that says nothing, and a host that believed it would take calls and
// refuse them by turns.
import { isFull } from "./trouble.ts";

/** For so long; a host is served again as soon after there is room. */
const FULL_MS = 2_000;

export class Room {
  #refused: unknown;
  #until = 0;

  /** What was asked has failed with this. */
  heard(error: unknown): void {
    if (!isFull(error) || error === this.#refused) return;
    this.#refused = error;
    this.#until = performance.now() + FULL_MS;
  }

  /** Throws what was heard a moment ago. */
  check(): void {
    if (performance.now() < this.#until) throw this.#refused;
  }
}
