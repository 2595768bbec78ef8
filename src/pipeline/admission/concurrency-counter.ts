// Requests at once, counted from the head on and in this process alone. A limit of the store counts only when a call is
// reserved, and by then the body has been read.

export class ConcurrencyCounter {
  readonly #counts = new Map<string, number>();

  /** False: as many as may be are inside already. */
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
