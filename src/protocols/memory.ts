// What a decoded value was read from, so that what stayed untouched goes back to its own wire word for word. Each codec has a
// memory of its own: another cannot see into it.

export interface Memory {
  /** Remembers. A copy does not carry it (nor does a structured clone): an edited value is written anew. */
  came<T extends object>(value: T, from: unknown): T;
  cameFrom<A>(value: object): A | undefined;
}

export function memory(): Memory {
  const CAME = Symbol("what a value was read from");
  return {
    came(value, from) {
      Object.defineProperty(value, CAME, { value: from });
      return value;
    },
    cameFrom: <A>(value: object) => (value as { [CAME]?: A })[CAME],
  };
}
