// What the database ended transactions with, by its own log: a store that tries again hides it, also from one whose counts died with its server.

/** Settings of a server whose log says so, each with its code. */
export const LOGGED = [
  "log_min_messages=error",
  "log_min_error_statement=panic",
  "log_line_prefix=%e ",
];

/** Deadlocks, and transactions that could not be put in an order: there are none where all lock in one order. */
const NEVER = ["40P01", "40001"];

export class Refusals {
  readonly #counts = new Map<string, number>();
  /** Which transactions stood in each other's way. */
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
