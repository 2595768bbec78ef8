// A map with a bound on its entries: the one that was written longest ago goes first.

export class BoundedMap<K, V> {
  readonly #maxEntries: number;
  readonly #entries = new Map<K, V>();

  constructor(most: number) {
    this.#maxEntries = most;
  }

  get size(): number {
    return this.#entries.size;
  }

  get(key: K): V | undefined {
    return this.#entries.get(key);
  }

  /** What is written anew is the newest again. */
  set(key: K, value: V): void {
    this.#entries.delete(key);
    this.#entries.set(key, value);
    if (this.#entries.size > this.#maxEntries)
      this.#entries.delete(this.#entries.keys().next().value!);
  }

  delete(key: K): void {
    this.#entries.delete(key);
  }

  values(): V[] {
    return [...this.#entries.values()];
  }

  entries(): [K, V][] {
    return [...this.#entries];
  }

  clear(): void {
    this.#entries.clear();
  }
}
