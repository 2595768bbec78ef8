// Transactions that the database aborted, by its own log: a store that retries hides them, also on
// a server whose counters died with it.

/** Settings of a server that logs each error with its code. */
export const LOGGED = [
  "log_min_messages=error",
  "log_min_error_statement=panic",
  "log_line_prefix=%e ",
];

/** Deadlocks and serialization failures. There are none if all transactions lock in one order. */
const NEVER = ["40P01", "40001"];

export class Refusals {
  readonly #counts = new Map<string, number>();
  /** The conflicting transactions. */
  readonly #told: string[] = [];
  #rest = "";

  readonly says = (text: string): void => {
    const lines = (this.#rest + text).split("\n");
    this.#rest = lines.pop()!;
    for (const line of lines) {
      const code = /^([0-9A-Z]{5}) ERROR:/.exec(line)?.[1];
      if (code !== undefined) this.#counts.set(code, (this.#counts.get(code) ?? 0) + 1);
      else if (/^(40P01 |\t)/.test(line) && this.#told.length < 30) this.#told.push(line.trim());
    }
  };

  of(code: string): number {
    return this.#counts.get(code) ?? 0;
  }

  get wrong(): string[] {
    return NEVER.filter((code) => this.of(code) > 0).map(
      (code) =>
        `the database ended ${this.of(code)} transactions with ${code}: ${this.#told.join(" ")}`,
    );
  }
}
