// Counts requests that are rejected before they reach a frontend, by error code. The codes are the
// gateway's own, so there are few.

export class RejectionCounter {
  readonly #counts = new Map<string, number>();

  count(code: string): void {
    this.#counts.set(code, (this.#counts.get(code) ?? 0) + 1);
  }

  counts(): Readonly<Record<string, number>> {
    return Object.fromEntries(this.#counts);
  }
}
