// A first-in, first-out queue with a capacity in items and bytes. It counts the items that it drops.

/** Capacity of a queue. Without limits, the queue never drops an item. */
export interface QueueLimits<T> {
  /** Maximum number of items. Default: no limit. */
  readonly maxItems?: number | undefined;
  /** Maximum total size of the items, as reported by `sizeOf`. Default: no limit. */
  readonly maxBytes?: number | undefined;
  /** Returns the size of an item. Default: every item has the size 0. */
  readonly sizeOf?: ((item: T) => number) | undefined;
  /**
   * Treatment of an item that does not fit. `refuse`: it is dropped. `drop_oldest`: the oldest
   * items are dropped instead. `wait`: the item is queued, and the caller must wait until the queue
   * is no longer full before it adds another item. Default: `refuse`.
   */
  readonly overflow?: "refuse" | "drop_oldest" | "wait" | undefined;
}

/** Holds items in order until they are taken. */
export class BoundedQueue<T> {
  readonly #maxItems: number;
  readonly #maxBytes: number;
  readonly #sizeOf: ((item: T) => number) | undefined;
  readonly #overflow: QueueLimits<T>["overflow"];
  #items: T[] = [];
  #bytes = 0;
  #dropped = 0;

  constructor({ maxItems = Infinity, maxBytes = Infinity, sizeOf, overflow }: QueueLimits<T> = {}) {
    this.#maxItems = maxItems;
    this.#maxBytes = maxBytes;
    this.#sizeOf = sizeOf;
    this.#overflow = overflow;
  }

  /** Number of queued items. */
  get length(): number {
    return this.#items.length;
  }

  /** Total size of the queued items. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Number of items that were dropped because they did not fit. */
  get dropped(): number {
    return this.#dropped;
  }

  /** Whether the queue has reached its capacity. */
  get isFull(): boolean {
    return this.#items.length >= this.#maxItems || this.#bytes >= this.#maxBytes;
  }

  /** Adds an item. Returns false if the item was dropped. */
  push(item: T): boolean {
    const size = this.#sizeOf ? this.#sizeOf(item) : 0;
    if (this.#items.length >= this.#maxItems || this.#bytes + size > this.#maxBytes)
      if (!this.#makeRoom(size)) return false;
    this.#items.push(item);
    this.#bytes += size;
    return true;
  }

  #makeRoom(size: number): boolean {
    if (this.#overflow === "wait") return true;
    if (this.#overflow === "drop_oldest" && size <= this.#maxBytes) {
      while (
        this.#items.length > 0 &&
        (this.#items.length >= this.#maxItems || this.#bytes + size > this.#maxBytes)
      ) {
        this.take(1);
        this.#dropped++;
      }
      return true;
    }
    this.#dropped++;
    return false;
  }

  /**
   * Takes the oldest items, at most `maxItems` of them and `maxBytes` in size, but at least one.
   * The caller owns the array.
   */
  take(maxItems = Infinity, maxBytes = Infinity): T[] {
    const all = this.#items;
    let end = Math.min(all.length, maxItems);
    if (this.#bytes > maxBytes) {
      let bytes = 0;
      for (let i = 0; i < end; i++)
        if ((bytes += this.#sizeOf!(all[i]!)) > maxBytes && i > 0) end = i;
    }
    if (end >= all.length) {
      this.#items = [];
      this.#bytes = 0;
      return all;
    }
    const taken = all.splice(0, end);
    this.#bytes -= this.#sum(taken);
    return taken;
  }

  /** Puts items back at the front, even if the queue is full. */
  putBack(items: readonly T[]): void {
    this.#items = [...items, ...this.#items];
    this.#bytes += this.#sum(items);
  }

  /** Removes the items for which `isUnwanted` returns true. Returns them in order. */
  remove(isUnwanted: (item: T) => boolean): T[] {
    const removed: T[] = [];
    this.#items = this.#items.filter((item) => !isUnwanted(item) || !removed.push(item));
    this.#bytes -= this.#sum(removed);
    return removed;
  }

  #sum(items: readonly T[]): number {
    let bytes = 0;
    if (this.#sizeOf) for (const item of items) bytes += this.#sizeOf(item);
    return bytes;
  }
}
