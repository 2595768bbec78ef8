// What a process may hold at once: bytes of bodies and of answers that are held whole. Asked before anything is read, so
// that many large requests are refused one by one, and do not end the process for all clients.

/** Below this a key's own share is not looked at: a small request costs one addition. */
const SMALL_BYTES = 64 * 1024;

export class MemoryBudget {
  #maxBytes: number;
  #usedBytes = 0;
  /** Bytes by key, of requests that are not small. It holds numbers alone, so it keeps no request in memory. */
  readonly #bytesByKey = new Map<string, number>();

  constructor(most: number) {
    this.#maxBytes = most;
  }

  get usedBytes(): number {
    return this.#usedBytes;
  }

  /** Another limit, from now on. */
  setLimit(most: number): void {
    this.#maxBytes = most;
  }

  /**
   * For a request that holds `held` already. False: there is no room, in all or in this key's half of it, and nothing was
   * taken. A key's only request may be larger than its half.
   */
  tryReserve(key: string, bytes: number, held: number): boolean {
    if (this.#usedBytes + bytes > this.#maxBytes) return false;
    const more = countedBytes(held + bytes) - countedBytes(held);
    if (more > 0) {
      const others = (this.#bytesByKey.get(key) ?? 0) - countedBytes(held);
      // A key without other requests keeps no other key out.
      if (others > 0 && others + held + bytes > this.#maxBytes / 2) return false;
      this.#bytesByKey.set(key, others + held + bytes);
    }
    this.#usedBytes += bytes;
    return true;
  }

  /** Gives back all that one request holds. */
  release(key: string, held: number): void {
    this.#usedBytes -= held;
    if (countedBytes(held) === 0) return;
    const others = (this.#bytesByKey.get(key) ?? 0) - held;
    if (others > 0) this.#bytesByKey.set(key, others);
    else this.#bytesByKey.delete(key);
  }
}

const countedBytes = (held: number): number => (held < SMALL_BYTES ? 0 : held);
