// Names of series by what stands behind their beginning. One that was made before is found faster than it is made again, and what a
// request adds is counted some thousand times a second.
import type { Series } from "./time-slots.ts";

/** More than a gateway sees in a minute; clients make up names too. */
const MAX_NAMES = 4_096;

export class SeriesNameCache {
  readonly #prefix: string;
  readonly #names = new Map<string, Series>();

  constructor(beginning: string) {
    this.#prefix = beginning;
  }

  get(end: string): Series {
    const found = this.#names.get(end);
    if (found !== undefined) return found;
    if (this.#names.size >= MAX_NAMES) this.#names.clear();
    const name = this.#prefix + end;
    this.#names.set(end, name);
    return name;
  }
}
