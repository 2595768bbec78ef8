// Requests at once, counted from the head on and in this process alone. A limit of the store counts only when a call is
// reserved, and by then the body has been read.

export class Turnstile {
  readonly #inside = new Map<string, number>();

  /** False: as many as may be are inside already. */
  enter(scope: string, most: number): boolean {
    const inside = this.#inside.get(scope) ?? 0;
    if (inside >= most) return false;
    this.#inside.set(scope, inside + 1);
    return true;
  }

  leave(scope: string): void {
    const inside = (this.#inside.get(scope) ?? 0) - 1;
    if (inside > 0) this.#inside.set(scope, inside);
    else this.#inside.delete(scope);
  }
}
