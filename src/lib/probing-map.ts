// What comes and soon goes again, found by a name: requests, calls. A Map makes its table anew after so many changes, and each table
// that it leaves behind has grown old and keeps all that it named until a full collection; this one stays where it is.

const INITIAL_CAPACITY = 256;
/** Characters from the end of a name that say where it is looked for first. */
const HASHED_CHARS = 16;

export class ProbingMap<V, Name extends string | number = string> {
  /** A name, what it names, and free places between them; at least half of all places are free. */
  #keys: (Name | undefined)[] = createSlots(INITIAL_CAPACITY);
  #values: (V | undefined)[] = createSlots(INITIAL_CAPACITY);
  #size = 0;

  get size(): number {
    return this.#size;
  }

  set(name: Name, value: V): void {
    if (2 * this.#size >= this.#keys.length) this.#grow();
    const at = this.#slotOf(name);
    if (this.#keys[at] === undefined) this.#size++;
    this.#keys[at] = name;
    this.#values[at] = value;
  }

  get(name: Name): V | undefined {
    if (this.#size === 0) return undefined;
    return this.#values[this.#slotOf(name)];
  }

  /** All that are here, in no order. */
  values(): V[] {
    return this.#values.filter((_value, at) => this.#keys[at] !== undefined) as V[];
  }

  /** It is here no longer. */
  remove(name: Name): V | undefined {
    if (this.#size === 0) return undefined;
    const at = this.#slotOf(name);
    if (this.#keys[at] === undefined) return undefined;
    const value = this.#values[at];
    this.#size--;
    this.#closeGap(at);
    return value;
  }

  /** Where it is, or the free place where it would be. */
  #slotOf(name: Name): number {
    const names = this.#keys;
    const last = names.length - 1;
    let at = homeSlot(name, last);
    for (let there = names[at]; there !== undefined && there !== name; there = names[at])
      at = (at + 1) & last;
    return at;
  }

  /** Those behind a free place that would be found no more move up. */
  #closeGap(free: number): void {
    const names = this.#keys;
    const last = names.length - 1;
    let at = free;
    for (
      let name = names[(at = (at + 1) & last)];
      name !== undefined;
      name = names[(at = (at + 1) & last)]
    ) {
      const first = homeSlot(name, last);
      if (((at - first) & last) < ((at - free) & last)) continue;
      names[free] = name;
      this.#values[free] = this.#values[at];
      free = at;
    }
    names[free] = undefined;
    this.#values[free] = undefined;
  }

  #grow(): void {
    const [names, values] = [this.#keys, this.#values];
    this.#keys = createSlots(names.length * 2);
    this.#values = createSlots(names.length * 2);
    for (const [i, name] of names.entries()) {
      if (name === undefined) continue;
      const at = this.#slotOf(name);
      this.#keys[at] = name;
      this.#values[at] = values[i];
    }
  }
}

const createSlots = <T>(count: number): (T | undefined)[] =>
  Array.from<T | undefined>({ length: count }).fill(undefined);

/** Numbers follow each other, and so do their places. */
function homeSlot(name: string | number, last: number): number {
  if (typeof name === "number") return name & last;
  let hash = name.length;
  for (let i = Math.max(0, name.length - HASHED_CHARS); i < name.length; i++)
    hash = (Math.imul(hash, 31) + name.charCodeAt(i)) | 0;
  return (hash ^ (hash >>> 15)) & last;
}
