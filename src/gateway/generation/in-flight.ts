// The exchanges that a generation has under way. A retired one ends when there are none.

export class InFlight {
  count = 0;
  #last: (() => void) | undefined;

  /** Counts an exchange. The function that it returns ends the count; calling it twice changes nothing. */
  enter(): () => void {
    this.count++;
    let inside = true;
    return () => {
      if (!inside) return;
      inside = false;
      if (--this.count === 0) this.#last?.();
    };
  }

  /** When all of them are over. */
  async over(): Promise<void> {
    if (this.count > 0) await new Promise<void>((resolve) => (this.#last = resolve));
  }
}
