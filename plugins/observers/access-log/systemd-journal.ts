// systemd's journal, where standard output leads there: it takes a line's level from its beginning, and so many lines and no more.
import type { RequestOutcome } from "tollgate/plugin";

/** Its usual limit is 10,000 lines in 30 s for a service; it passes over what is more. */
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

/** Says once that there are more lines than the journal takes. */
export class JournalRateMonitor {
  readonly #onExceeded: (rate: number) => void;
  #since = 0;
  #lines = 0;
  #hasWarned = false;

  constructor(tell: (rate: number) => void) {
    this.#onExceeded = tell;
  }

  /** So many more; `now` in milliseconds. */
  add(lines: number, now: number): void {
    if (this.#hasWarned) return;
    if (now - this.#since >= 1_000) [this.#since, this.#lines] = [now, 0];
    this.#lines += lines;
    if (this.#lines <= JOURNAL_LINES_PER_SECOND) return;
    this.#hasWarned = true;
    this.#onExceeded(this.#lines);
  }
}
