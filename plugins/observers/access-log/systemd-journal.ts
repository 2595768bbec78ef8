// Support for the systemd journal as standard output. The journal reads a line's level from a
// prefix and limits the rate of lines.
import type { RequestOutcome } from "tollgate/plugin";

/**
 * The journal's default rate limit: 10,000 lines in 30 s per service. The journal drops further
 * lines.
 */
export const JOURNAL_LINES_PER_SECOND = 10_000 / 30;

const LEVEL_PREFIXES = {
  ok: "<6>",
  client_error: "<4>",
  refused: "<4>",
  canceled: "<4>",
  upstream_error: "<3>",
  error: "<3>",
} as const satisfies Record<RequestOutcome, string>;

export const levelPrefix = (outcome: RequestOutcome): string => LEVEL_PREFIXES[outcome];

/** Reports once if more lines are written than the journal accepts. */
export class JournalRateMonitor {
  readonly #onExceeded: (rate: number) => void;
  #since = 0;
  #lines = 0;
  #hasWarned = false;

  constructor(tell: (rate: number) => void) {
    this.#onExceeded = tell;
  }

  /** Counts a number of lines. `now` is in milliseconds. */
  add(lines: number, now: number): void {
    if (this.#hasWarned) return;
    if (now - this.#since >= 1_000) [this.#since, this.#lines] = [now, 0];
    this.#lines += lines;
    if (this.#lines <= JOURNAL_LINES_PER_SECOND) return;
    this.#hasWarned = true;
    this.#onExceeded(this.#lines);
  }
}
