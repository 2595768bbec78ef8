// OTLP attributes and times, in the form in which items are built. Their JSON form is different,
// and `toJSON` returns it. Undefined values are omitted.

/** Maximum text length. Longer texts are truncated, because clients choose some of them. */
const MAX_TEXT_LENGTH = 256;

type AttributeValue = string | number | boolean | readonly string[];

/** A time in Unix milliseconds, which OTLP writes in nanoseconds. */
export class Time {
  readonly ms: number;

  constructor(ms: number) {
    this.ms = Math.max(0, Math.round(ms));
  }

  toJSON(): string {
    return this.ms > 0 ? `${this.ms}000000` : "0";
  }
}

/** An attribute of each type: its key, its type, and its value, as consecutive elements of a list. */
export type AttributeType = "text" | "texts" | "boolean" | "integer" | "double";

export class Attributes {
  /** Keys, types, and values, one after the other. */
  readonly entries: (AttributeValue | AttributeType)[] = [];

  /** Adds an attribute. A whole number is written as an integer. */
  add(key: string, value: AttributeValue | undefined): this {
    if (value === undefined) return this;
    if (typeof value === "string") this.entries.push(key, "text", truncate(value));
    else if (typeof value === "boolean") this.entries.push(key, "boolean", value);
    else if (typeof value !== "number") this.entries.push(key, "texts", value.map(truncate));
    else this.entries.push(key, Number.isSafeInteger(value) ? "integer" : "double", value);
    return this;
  }

  /** Adds the same value under each name. */
  addUnder(keys: readonly string[], value: AttributeValue | undefined): this {
    if (value !== undefined) for (const key of keys) this.add(key, value);
    return this;
  }

  /** Adds a number as a double, even if it is a whole number. */
  addDouble(key: string, value: number | undefined): this {
    if (value !== undefined) this.entries.push(key, "double", value);
    return this;
  }

  addAll(of: { readonly [key: string]: string | undefined }, prefix = ""): this {
    for (const key in of) this.add(prefix + truncate(key), of[key]);
    return this;
  }

  toJSON(): readonly object[] {
    const list: object[] = [];
    for (let i = 0; i < this.entries.length; i += 3) {
      const value = this.entries[i + 2] as never;
      list.push({
        key: this.entries[i],
        value: JSON_VALUES[this.entries[i + 1] as AttributeType](value),
      });
    }
    return list;
  }
}

const JSON_VALUES: { readonly [T in AttributeType]: (value: never) => object } = {
  text: (stringValue) => ({ stringValue }),
  texts: (texts: readonly string[]) => ({
    arrayValue: { values: texts.map((stringValue) => ({ stringValue })) },
  }),
  boolean: (boolValue) => ({ boolValue }),
  integer: (value) => ({ intValue: String(value) }),
  double: (doubleValue) => ({ doubleValue }),
};

const truncate = (text: string): string =>
  text.length > MAX_TEXT_LENGTH ? text.slice(0, MAX_TEXT_LENGTH) : text;
