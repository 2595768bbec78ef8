// Stores the source of a decoded value, so that an unchanged value is sent back verbatim in its
// own protocol. Each codec has its own memory, which other codecs cannot read.

export interface SourceMemory {
  /**
   * Attaches the source to the value and returns the value. A copy or structured clone does not
   * carry the source, so an edited value is re-encoded.
   */
  remember<T extends object>(value: T, from: unknown): T;
  sourceOf<A>(value: object): A | undefined;
}

/**
 * A base class whose constructor returns its argument. Subclasses therefore add their fields
 * to an existing object.
 */
const ReturnsArgument = function (value: object) {
  return value;
} as unknown as new (value: object) => object;

export function createSourceMemory(): SourceMemory {
  /**
   * Holds the source in a private field. A private field is as hidden as a non-enumerable property
   * and takes a tenth of the time to create.
   */
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
