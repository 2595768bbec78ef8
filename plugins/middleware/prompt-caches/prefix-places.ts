// The places of first differences, in the form of labels. Totals have a group for each value of a
// label, so the number of different places is bounded for each key and day.
import type { PrefixChange } from "./conversation-prefixes.ts";

const DAY_MS = 86_400_000;
/** Maximum number of different places per key and day. */
const MAX_PLACES_PER_KEY = 100;
/** Maximum number of different places of all keys per day. */
const MAX_PLACES = 20_000;

/** Returns the place of a change, such as "system 1204", or "messages[3] 4160-4223" for a block. */
const formatPlace = ({ path, from, to }: PrefixChange): string =>
  `${path} ${from}${to - from > 1 ? `-${to - 1}` : ""}`;

export class PrefixPlaces {
  #day = 0;
  readonly #places = new Set<string>();
  /** Number of different places, by key. */
  readonly #counts = new Map<string, number>();

  /** Returns the place of a change. Returns undefined if the key has too many places on this day. */
  placeOf(key: string, change: PrefixChange, now: number): string | undefined {
    const day = Math.floor(now / DAY_MS);
    if (day !== this.#day) {
      this.#day = day;
      this.#places.clear();
      this.#counts.clear();
    }
    const place = formatPlace(change);
    const id = `${place} ${key}`;
    if (this.#places.has(id)) return place;
    const count = this.#counts.get(key) ?? 0;
    if (count >= MAX_PLACES_PER_KEY || this.#places.size >= MAX_PLACES) return undefined;
    this.#counts.set(key, count + 1);
    this.#places.add(id);
    return place;
  }
}
