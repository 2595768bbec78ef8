// Requests that an isolated plugin has received and that have not ended, by ID. Used on both sides.
// The end of a request is not reported if the plugin was called only once for it, as by `admit` for
// models that it does not handle. If there are too many entries, the older half is dropped.
import { ProbingMap } from "../lib/probing-map.ts";

const GENERATION_SIZE = 10_000;

export class KnownRequests<V> {
  #newer = new ProbingMap<V>();
  #older = new ProbingMap<V>();

  get(id: string): V | undefined {
    return this.#newer.get(id) ?? this.#older.get(id);
  }

  set(id: string, value: V): void {
    if (this.#newer.size >= GENERATION_SIZE) {
      this.#older = this.#newer;
      this.#newer = new ProbingMap();
    }
    if (this.#older.size > 0) this.#older.remove(id);
    this.#newer.set(id, value);
  }

  /** Removes a request that has ended. */
  remove(id: string): V | undefined {
    return this.#newer.remove(id) ?? this.#older.remove(id);
  }

  values(): readonly V[] {
    return [...this.#older.values(), ...this.#newer.values()];
  }
}
