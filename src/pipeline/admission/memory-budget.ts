// Limits the bytes of bodies and buffered responses that a process holds at the same time. Memory
// is reserved before a body is read, so that many large requests are rejected one by one instead of
// crashing the process for all clients.

/**
 * Size in bytes below which a request does not count against its key's share: a small request costs
 * one addition.
 */
const SMALL_BYTES = 64 * 1024;

export class MemoryBudget {
  #maxBytes: number;
  #usedBytes = 0;
  /**
   * Bytes of large requests, by key. The map contains only numbers, so no request is kept in
   * memory.
   */
  readonly #bytesByKey = new Map<string, number>();

  constructor(most: number) {
    this.#maxBytes = most;
  }

  get usedBytes(): number {
    return this.#usedBytes;
  }

  /** Replaces the limit. */
  setLimit(most: number): void {
    this.#maxBytes = most;
  }

  /**
   * Reserves bytes for a request that already holds `held` bytes. Returns false, and reserves
   * nothing, if the process's limit or the key's half of it would be exceeded. If a key has only
   * one request, that request may exceed the half.
   */
  tryReserve(key: string, bytes: number, held: number): boolean {
    if (this.#usedBytes + bytes > this.#maxBytes) return false;
    const more = countedBytes(held + bytes) - countedBytes(held);
    if (more > 0) {
      const others = (this.#bytesByKey.get(key) ?? 0) - countedBytes(held);
      // If this is the key's only request, it may use more than half of the memory.
      if (others > 0 && others + held + bytes > this.#maxBytes / 2) return false;
      this.#bytesByKey.set(key, others + held + bytes);
    }
    this.#usedBytes += bytes;
    return true;
  }

  /** Releases the bytes that one request holds, all of them or down to `left`. */
  release(key: string, held: number, left = 0): void {
    this.#usedBytes -= held - left;
    const less = countedBytes(held) - countedBytes(left);
    if (less === 0) return;
    const rest = (this.#bytesByKey.get(key) ?? 0) - less;
    if (rest > 0) this.#bytesByKey.set(key, rest);
    else this.#bytesByKey.delete(key);
  }
}

const countedBytes = (held: number): number => (held < SMALL_BYTES ? 0 : held);
