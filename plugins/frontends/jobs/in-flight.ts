// Counts the bytes and files that requests are storing for an owner, so that parallel requests together keep its limits
// before their records exist.

/** Amounts that count against the limits of an owner. */
export interface Amounts {
  readonly bytes: number;
  readonly count: number;
}

/** The part of one request. It counts until it is released. */
export interface InFlightPart extends Disposable {
  /** Counts more bytes. Returns false if they exceed the limit. */
  add(bytes: number): boolean;
}

export class InFlight {
  readonly #byOwner = new Map<string, { bytes: number; count: number }>();

  of(owner: string): Amounts {
    return this.#byOwner.get(owner) ?? { bytes: 0, count: 0 };
  }

  /** Begins the part of a request that may use up to `limit` bytes with all other parts. */
  begin(owner: string, limit: number): InFlightPart {
    const all = this.#byOwner.get(owner) ?? { bytes: 0, count: 0 };
    this.#byOwner.set(owner, all);
    all.count++;
    let [own, isOpen] = [0, true];
    return {
      add(bytes) {
        own += bytes;
        all.bytes += bytes;
        return all.bytes <= limit;
      },
      [Symbol.dispose]: () => {
        if (!isOpen) return;
        isOpen = false;
        all.bytes -= own;
        if (--all.count === 0) this.#byOwner.delete(owner);
      },
    };
  }
}
