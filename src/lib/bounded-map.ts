// A map with a limited number of entries. The entry that was written longest ago is evicted first.

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

  /** Writes an entry. Writing an existing key makes it the newest entry. */
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
