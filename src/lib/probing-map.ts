// A hash map for short-lived entries such as requests and calls. A `Map` allocates a new table
// after a certain number of changes. Each discarded table is then in the old heap and keeps its
// entries in memory until a full collection. This map reuses its table.

const INITIAL_CAPACITY = 256;
/** Number of characters from the end of a name that are hashed. */
const HASHED_CHARS = 16;

export class ProbingMap<V, Name extends string | number = string> {
  /**
   * Names, with their values at the same index in `#values`. At least half of the slots are free.
   */
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

  /** Returns all values in no particular order. */
  values(): V[] {
    return this.#values.filter((_value, at) => this.#keys[at] !== undefined) as V[];
  }

  /** Removes an entry and returns its value. */
  remove(name: Name): V | undefined {
    if (this.#size === 0) return undefined;
    const at = this.#slotOf(name);
    if (this.#keys[at] === undefined) return undefined;
    const value = this.#values[at];
    this.#size--;
    this.#closeGap(at);
    return value;
  }

  /** Returns the slot of a name, or the free slot into which it would be inserted. */
  #slotOf(name: Name): number {
    const names = this.#keys;
    const last = names.length - 1;
    let at = homeSlot(name, last);
    for (let there = names[at]; there !== undefined && there !== name; there = names[at])
      at = (at + 1) & last;
    return at;
  }

  /** Moves entries behind a freed slot up if a lookup would otherwise not find them. */
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

/** Returns the first slot to probe. Consecutive numbers get consecutive slots. */
function homeSlot(name: string | number, last: number): number {
  if (typeof name === "number") return name & last;
  let hash = name.length;
  for (let i = Math.max(0, name.length - HASHED_CHARS); i < name.length; i++)
    hash = (Math.imul(hash, 31) + name.charCodeAt(i)) | 0;
  return (hash ^ (hash >>> 15)) & last;
}
