// Limits how often an address may do something, in this process.

/** Maximum number of addresses. The oldest are deleted first. */
const MAX_ADDRESSES = 10_000;

export class RateLimit {
  readonly #max: number;
  readonly #windowMs: number;
  readonly #now: () => number;
  readonly #counts = new Map<string, { count: number; until: number }>();

  /** @param now Returns a monotonic time in milliseconds. */
  constructor(max: number, windowMs: number, now: () => number = () => performance.now()) {
    this.#max = max;
    this.#windowMs = windowMs;
    this.#now = now;
  }

  /** Counts one attempt. Returns the time in seconds until the next is allowed, or undefined. */
  take(address: string): number | undefined {
    const name = networkOf(address);
    const now = this.#now();
    let slot = this.#counts.get(name);
    if (!slot || slot.until <= now) {
      this.#counts.delete(name);
      slot = { count: 0, until: now + this.#windowMs };
      this.#counts.set(name, slot);
      if (this.#counts.size > MAX_ADDRESSES) this.#counts.delete(this.#counts.keys().next().value!);
    }
    if (slot.count >= this.#max) return Math.ceil((slot.until - now) / 1_000);
    slot.count++;
    return undefined;
  }
}

/**
 * Returns the network of an address. One host can use every IPv6 address of its /64 network, and one
 * site every network of its /48 network.
 */
export function networkOf(address: string, prefix: 48 | 64 = 64): string {
  if (!address.includes(":") || address.startsWith("::ffff:")) return address;
  const [head = "", tail] = address.split("::");
  const groups = head === "" ? [] : head.split(":");
  const rest = tail === undefined || tail === "" ? [] : tail.split(":");
  while (tail !== undefined && groups.length + rest.length < 8) groups.push("0");
  return [...groups, ...rest].slice(0, prefix / 16).join(":");
}
