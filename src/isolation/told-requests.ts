// Requests that a plugin outside was told of, by their ids, on either side: until their end is told. Of those that a plugin is asked of
// once and never again, as by `admit` where it is for other models, no end is told: where there are too many, the older half goes.
import { Passing } from "../lib/passing.ts";

const HALF = 10_000;

export class ToldRequests<V> {
  #newer = new Passing<V>();
  #older = new Passing<V>();

  get(id: string): V | undefined {
    return this.#newer.get(id) ?? this.#older.get(id);
  }

  put(id: string, value: V): void {
    if (this.#newer.size >= HALF) {
      this.#older = this.#newer;
      this.#newer = new Passing();
    }
    if (this.#older.size > 0) this.#older.take(id);
    this.#newer.put(id, value);
  }

  /** It is over. */
  take(id: string): V | undefined {
    return this.#newer.take(id) ?? this.#older.take(id);
  }

  values(): readonly V[] {
    return [...this.#older.values(), ...this.#newer.values()];
  }
}
