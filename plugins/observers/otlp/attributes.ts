// OTLP attributes, in the form of OTLP's JSON. Undefined values are omitted.

/** Maximum text length. Longer texts are cut, because clients choose some of them. */
const MAX_TEXT_LENGTH = 256;

type AttributeValue = string | number | boolean | readonly string[];

export interface OtlpAttribute {
  readonly key: string;
  readonly value: object;
}

export class Attributes {
  readonly list: OtlpAttribute[] = [];

  /** Adds an attribute. A whole number is written as an integer. */
  add(key: string, value: AttributeValue | undefined): this {
    if (value !== undefined) this.list.push({ key, value: toAttributeValue(value) });
    return this;
  }

  /** Adds the same value under each name. */
  addUnder(keys: readonly string[], value: AttributeValue | undefined): this {
    if (value !== undefined) for (const key of keys) this.add(key, value);
    return this;
  }

  /** Adds a number as a double, even if it is a whole number. */
  addDouble(key: string, doubleValue: number | undefined): this {
    if (doubleValue !== undefined) this.list.push({ key, value: { doubleValue } });
    return this;
  }

  addAll(of: { readonly [key: string]: string | undefined }, prefix = ""): this {
    for (const key in of) this.add(prefix + truncate(key), of[key]);
    return this;
  }
}

function toAttributeValue(value: AttributeValue): object {
  if (typeof value === "string") return { stringValue: truncate(value) };
  if (typeof value === "boolean") return { boolValue: value };
  if (typeof value !== "number")
    return { arrayValue: { values: value.map((one) => ({ stringValue: truncate(one) })) } };
  return Number.isSafeInteger(value) ? { intValue: String(value) } : { doubleValue: value };
}

const truncate = (text: string): string =>
  text.length > MAX_TEXT_LENGTH ? text.slice(0, MAX_TEXT_LENGTH) : text;

/** Converts Unix milliseconds to OTLP nanoseconds. */
export function toNanos(ms: number): string {
  const whole = Math.round(ms);
  return whole > 0 ? `${whole}000000` : "0";
}
