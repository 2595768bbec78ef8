// Counts concurrent requests in this process, from the moment their headers are read. Limits of the
// store apply only when a call is reserved, and by then the body has been read.

export class ConcurrencyCounter {
  readonly #counts = new Map<string, number>();

  /** Takes one slot of the scope. Returns false if `max` slots are taken. */
  tryAcquire(scope: string, max: number): boolean {
    const count = this.#counts.get(scope) ?? 0;
    if (count >= max) return false;
    this.#counts.set(scope, count + 1);
    return true;
  }

  release(scope: string): void {
    const count = (this.#counts.get(scope) ?? 0) - 1;
    if (count > 0) this.#counts.set(scope, count);
    else this.#counts.delete(scope);
  }
}
