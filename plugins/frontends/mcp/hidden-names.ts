// Removes names of tools that a client may not call from texts that a server writes, such as the
// error "Unknown tool x. Did you mean y?".
import type { Json } from "tollgate/plugin";

/** Largest number of names that are searched for. */
const MAX_NAMES = 5_000;
const PLACEHOLDER = "[tool]";
/** A word that can be a name. A plain lower-case word is ordinary text as well. */
const NAME = /[A-Za-z0-9_.-]{2,128}/g;
const PLAIN_WORD = /^[A-Z]?[a-z]+$/;

export class HiddenNames {
  readonly #names: ReadonlySet<string>;

  constructor(names: Iterable<string>) {
    this.#names = new Set([...names].slice(0, MAX_NAMES));
  }

  /**
   * Returns the text without hidden names. `isError`: the text is an error, in which also a plain
   * word is a name.
   */
  removeFrom(text: string, isError = false): string {
    if (this.#names.size === 0) return text;
    return text.replace(NAME, (word) => {
      if (this.#names.has(word)) return isError || !PLAIN_WORD.test(word) ? PLACEHOLDER : word;
      // A sentence can end after a name.
      const trimmed = word.replace(/[.-]+$/, "");
      return trimmed !== word && this.#names.has(trimmed) && (isError || !PLAIN_WORD.test(trimmed))
        ? PLACEHOLDER + word.slice(trimmed.length)
        : word;
    });
  }

  /** Returns JSON without hidden names in its strings. */
  removeFromJson<T extends Json>(value: T, isError = false): T {
    if (this.#names.size === 0) return value;
    const visit = (one: unknown): unknown => {
      if (typeof one === "string") return this.removeFrom(one, isError);
      if (Array.isArray(one)) return one.map(visit);
      if (typeof one !== "object" || one === null) return one;
      return Object.fromEntries(Object.entries(one).map(([name, inner]) => [name, visit(inner)]));
    };
    return visit(value) as T;
  }
}
