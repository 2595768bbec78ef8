// Removes names of tools that a client may not call from texts that a server writes, such as the
// error "Unknown tool x. Did you mean y?".
import type { Json } from "tollgate/plugin";

/** Largest number of names that are searched for. */
const MAX_NAMES = 5_000;
/** Largest number of names that are not one word, and of their characters that are compared. */
const MAX_PHRASES = 1_000;
const MAX_PHRASE_LENGTH = 128;
const PLACEHOLDER = "[tool]";
/** A word that can be a name. A plain lower-case word is ordinary text as well. */
const NAME = /[A-Za-z0-9_.-]{2,128}/g;
const WORD = /^[A-Za-z0-9_.-]{2,128}$/;
const PLAIN_WORD = /^\p{Lu}?[\p{Ll}\p{Lo}\p{M}]+$/u;
/** A character that continues a word of a script with spaces. */
const WORD_CHARACTER = "[\\p{Lu}\\p{Ll}\\p{N}_]";
const STARTS_WORD = new RegExp(`^${WORD_CHARACTER}`, "u");
const ENDS_WORD = new RegExp(`${WORD_CHARACTER}$`, "u");

/** Text of a server, which decides whether a plain word in it is a name. */
export interface ServerText {
  /** Whether the text is an error or a suggestion, in which also a plain word is a name. */
  readonly isError?: boolean;
  /** Whether it is a result, in which some members contain words of the protocol or binary data. */
  readonly isResult?: boolean;
}

export const HIDDEN_MESSAGE =
  "The server returned an error. Its text can name tools that this key may not call, so it is not shown.";

export class HiddenNames {
  readonly #names: ReadonlySet<string>;
  /** Matches names that are not one word. Undefined until the first text is read. */
  #phrases: RegExp | null | undefined;

  constructor(names: Iterable<string>) {
    this.#names = new Set([...names].slice(0, MAX_NAMES));
  }

  /** Returns the text without hidden names. */
  removeFrom(text: string, { isError = false }: ServerText = {}): string {
    if (this.#names.size === 0) return text;
    const isName = (word: string) => isError || !PLAIN_WORD.test(word);
    return this.#removePhrases(text, isName).replace(NAME, (word) => {
      if (this.#names.has(word)) return isName(word) ? PLACEHOLDER : word;
      // A sentence can end after a name.
      const trimmed = word.replace(/[.-]+$/, "");
      return trimmed !== word && this.#names.has(trimmed) && isName(trimmed)
        ? PLACEHOLDER + word.slice(trimmed.length)
        : word;
    });
  }

  /** Returns JSON without hidden names in its strings. */
  removeFromJson<T extends Json>(value: T, of: ServerText = {}): T {
    if (this.#names.size === 0) return value;
    const visit = (one: unknown, text: ServerText): unknown => {
      if (typeof one === "string") return this.removeFrom(one, text);
      if (Array.isArray(one)) return one.map((inner) => visit(inner, text));
      if (typeof one !== "object" || one === null) return one;
      const binary = of.isResult
        ? binaryMember(one as { type?: unknown; uri?: unknown })
        : undefined;
      return Object.fromEntries(
        Object.entries(one).map(([name, inner]) => {
          if (name === binary) return [name, inner];
          const isOfProtocol = of.isResult && PROTOCOL_MEMBERS.has(name);
          return [name, visit(inner, isOfProtocol ? {} : text)];
        }),
      );
    };
    return visit(value, of) as T;
  }

  #removePhrases(text: string, isName: (word: string) => boolean): string {
    const phrases = (this.#phrases ??= toPhrases(this.#names));
    if (!phrases) return text;
    return text.replace(phrases, (name) => (isName(name) ? PLACEHOLDER : name));
  }
}

/** Members of results whose plain words are words of MCP, such as `type: text`. */
const PROTOCOL_MEMBERS: ReadonlySet<string> = new Set([
  "type",
  "resultType",
  "mimeType",
  "audience",
]);

/** Returns the member of a block of content that contains binary data. */
function binaryMember({ type, uri }: { type?: unknown; uri?: unknown }): string | undefined {
  if (type === "image" || type === "audio") return "data";
  return typeof uri === "string" ? "blob" : undefined;
}

/**
 * Returns an expression for the names that are not one word, the longest first. A name that starts
 * or ends with a letter is not a part of a longer word.
 */
function toPhrases(names: ReadonlySet<string>): RegExp | null {
  const phrases = [...names]
    .filter((name) => name.length > 1 && !WORD.test(name) && /[\p{L}\p{N}]/u.test(name))
    .toSorted((a, b) => b.length - a.length)
    .slice(0, MAX_PHRASES);
  // Names with the same ends are together, which lets the engine compare their common starts once.
  const byEnds = Map.groupBy(phrases, (name) => {
    const before = STARTS_WORD.test(name) ? `(?<!${WORD_CHARACTER})` : "";
    const isWhole = name.length <= MAX_PHRASE_LENGTH;
    return `${before}()${isWhole && ENDS_WORD.test(name) ? `(?!${WORD_CHARACTER})` : ""}`;
  });
  const groups = [...byEnds].map(([ends, own]) =>
    ends.replace("()", () => `(?:${own.map(escapeForPattern).join("|")})`),
  );
  return groups.length > 0 ? new RegExp(groups.join("|"), "gu") : null;
}

const escapeForPattern = (name: string): string =>
  name.slice(0, MAX_PHRASE_LENGTH).replace(/[\\^$.*+?()[\]{}|]/g, "\\$&");
