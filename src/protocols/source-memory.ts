// What a decoded value was read from, so that what stayed untouched goes back to its own wire word for word. Each codec has a
// memory of its own: another cannot see into it.

export interface SourceMemory {
  /** Remembers. A copy does not carry it (nor does a structured clone): an edited value is written anew. */
  remember<T extends object>(value: T, from: unknown): T;
  sourceOf<A>(value: object): A | undefined;
}

/** A class that makes nothing: what is made of it is what was given, with the fields of those that extend it. */
const ReturnsArgument = function (value: object) {
  return value;
} as unknown as new (value: object) => object;

export function createSourceMemory(): SourceMemory {
  /** A private field: as hidden as a property that is not listed, and made in a tenth of the time. */
  class Kept extends ReturnsArgument {
    readonly #from: unknown;
    constructor(value: object, from: unknown) {
      super(value);
      this.#from = from;
    }
    static from(value: object): unknown {
      return typeof value === "object" && #from in value ? value.#from : undefined;
    }
  }
  return {
    remember<T extends object>(value: T, from: unknown): T {
      return new Kept(value, from) as T;
    },
    sourceOf: <A>(value: object) => Kept.from(value) as A | undefined,
  };
}
