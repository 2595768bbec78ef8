// Names of series by what stands behind their beginning. One that was made before is found faster than it is made again, and what a
// request adds is counted some thousand times a second.
import type { Series } from "./slots.ts";

/** More than a gateway sees in a minute; clients make up names too. */
const MOST = 4_096;

export class SeriesNames {
  readonly #beginning: string;
  readonly #made = new Map<string, Series>();

  constructor(beginning: string) {
    this.#beginning = beginning;
  }

  of(end: string): Series {
    const found = this.#made.get(end);
    if (found !== undefined) return found;
    if (this.#made.size >= MOST) this.#made.clear();
    const name = this.#beginning + end;
    this.#made.set(end, name);
    return name;
  }
}
