// What comes and soon goes again, found by a name: requests, calls. A Map makes its table anew after so many changes, and each table
// that it leaves behind has grown old and keeps all that it named until a full collection; this one stays where it is.

const FIRST = 256;
/** Characters from the end of a name that say where it is looked for first. */
const TOLD_BY = 16;

export class Passing<V, Name extends string | number = string> {
  /** A name, what it names, and free places between them; at least half of all places are free. */
  #names: (Name | undefined)[] = places(FIRST);
  #values: (V | undefined)[] = places(FIRST);
  #size = 0;

  get size(): number {
    return this.#size;
  }

  put(name: Name, value: V): void {
    if (2 * this.#size >= this.#names.length) this.#widen();
    const at = this.#placeOf(name);
    if (this.#names[at] === undefined) this.#size++;
    this.#names[at] = name;
    this.#values[at] = value;
  }

  get(name: Name): V | undefined {
    if (this.#size === 0) return undefined;
    return this.#values[this.#placeOf(name)];
  }

  /** All that are here, in no order. */
  values(): V[] {
    return this.#values.filter((_value, at) => this.#names[at] !== undefined) as V[];
  }

  /** It is here no longer. */
  take(name: Name): V | undefined {
    if (this.#size === 0) return undefined;
    const at = this.#placeOf(name);
    if (this.#names[at] === undefined) return undefined;
    const value = this.#values[at];
    this.#size--;
    this.#close(at);
    return value;
  }

  /** Where it is, or the free place where it would be. */
  #placeOf(name: Name): number {
    const names = this.#names;
    const last = names.length - 1;
    let at = firstPlace(name, last);
    for (let there = names[at]; there !== undefined && there !== name; there = names[at])
      at = (at + 1) & last;
    return at;
  }

  /** Those behind a free place that would be found no more move up. */
  #close(free: number): void {
    const names = this.#names;
    const last = names.length - 1;
    let at = free;
    for (
      let name = names[(at = (at + 1) & last)];
      name !== undefined;
      name = names[(at = (at + 1) & last)]
    ) {
      const first = firstPlace(name, last);
      if (((at - first) & last) < ((at - free) & last)) continue;
      names[free] = name;
      this.#values[free] = this.#values[at];
      free = at;
    }
    names[free] = undefined;
    this.#values[free] = undefined;
  }

  #widen(): void {
    const [names, values] = [this.#names, this.#values];
    this.#names = places(names.length * 2);
    this.#values = places(names.length * 2);
    for (const [i, name] of names.entries()) {
      if (name === undefined) continue;
      const at = this.#placeOf(name);
      this.#names[at] = name;
      this.#values[at] = values[i];
    }
  }
}

const places = <T>(count: number): (T | undefined)[] =>
  Array.from<T | undefined>({ length: count }).fill(undefined);

/** Numbers follow each other, and so do their places. */
function firstPlace(name: string | number, last: number): number {
  if (typeof name === "number") return name & last;
  let hash = name.length;
  for (let i = Math.max(0, name.length - TOLD_BY); i < name.length; i++)
    hash = (Math.imul(hash, 31) + name.charCodeAt(i)) | 0;
  return (hash ^ (hash >>> 15)) & last;
}
