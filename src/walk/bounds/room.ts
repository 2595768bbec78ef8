// What a process may hold at once: bytes of bodies and of answers that are held whole. Asked before anything is read, so
// that many large requests are refused one by one, and do not end the process for all clients.

/** Below this a key's own share is not looked at: a small request costs one addition. */
const SMALL = 64 * 1024;

export class Room {
  #most: number;
  #taken = 0;
  /** Bytes by key, of requests that are not small. It holds numbers alone, so it keeps no request in memory. */
  readonly #by = new Map<string, number>();

  constructor(most: number) {
    this.#most = most;
  }

  get taken(): number {
    return this.#taken;
  }

  /** Another limit, from now on. */
  limit(most: number): void {
    this.#most = most;
  }

  /**
   * For a request that holds `held` already. False: there is no room, in all or in this key's half of it, and nothing was
   * taken. A key's only request may be larger than its half.
   */
  take(who: string, bytes: number, held: number): boolean {
    if (this.#taken + bytes > this.#most) return false;
    const more = counted(held + bytes) - counted(held);
    if (more > 0) {
      const others = (this.#by.get(who) ?? 0) - counted(held);
      // A key without other requests keeps no other key out.
      if (others > 0 && others + held + bytes > this.#most / 2) return false;
      this.#by.set(who, others + held + bytes);
    }
    this.#taken += bytes;
    return true;
  }

  /** Gives back all that one request holds. */
  leave(who: string, held: number): void {
    this.#taken -= held;
    if (counted(held) === 0) return;
    const others = (this.#by.get(who) ?? 0) - held;
    if (others > 0) this.#by.set(who, others);
    else this.#by.delete(who);
  }
}

const counted = (held: number): number => (held < SMALL ? 0 : held);
