// Requests that a plugin outside was told of, by their ids, on either side: until their end is told. Of those that a plugin is asked of
// once and never again, as by `admit` where it is for other models, no end is told: where there are too many, the older half goes.
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

  /** It is over. */
  remove(id: string): V | undefined {
    return this.#newer.remove(id) ?? this.#older.remove(id);
  }

  values(): readonly V[] {
    return [...this.#older.values(), ...this.#newer.values()];
  }
}
