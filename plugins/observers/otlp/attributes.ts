// OTLP attributes. Undefined values are omitted.

/** Maximum text length. Longer texts are cut, because clients choose some of them. */
const MAX_TEXT_LENGTH = 256;

type AttributeValue = string | number | boolean | readonly string[];

/** Receives attributes and writes them as a JSON list or as protobuf bytes. */
export abstract class AttributeWriter {
  protected abstract addText(key: string, text: string): void;
  protected abstract addTexts(key: string, texts: readonly string[]): void;
  protected abstract addInteger(key: string, value: number): void;
  protected abstract addBoolean(key: string, value: boolean): void;
  protected abstract addFloat(key: string, value: number): void;

  /** Adds an attribute. A whole number is written as an integer. */
  add(key: string, value: AttributeValue | undefined): this {
    if (value === undefined) return this;
    if (typeof value === "string") this.addText(key, truncate(value));
    else if (typeof value === "boolean") this.addBoolean(key, value);
    else if (typeof value !== "number") this.addTexts(key, value.map(truncate));
    else if (Number.isSafeInteger(value)) this.addInteger(key, value);
    else this.addFloat(key, value);
    return this;
  }

  /** Adds the same value under each name. */
  addUnder(keys: readonly string[], value: AttributeValue | undefined): this {
    if (value !== undefined) for (const key of keys) this.add(key, value);
    return this;
  }

  /** Adds a number as a double, even if it is a whole number. */
  addDouble(key: string, value: number | undefined): this {
    if (value !== undefined) this.addFloat(key, value);
    return this;
  }

  addAll(of: { readonly [key: string]: string | undefined }, prefix = ""): this {
    for (const key in of) this.add(prefix + truncate(key), of[key]);
    return this;
  }
}

export interface OtlpAttribute {
  readonly key: string;
  readonly value: object;
}

export class JsonAttributes extends AttributeWriter {
  readonly list: OtlpAttribute[] = [];

  protected addText(key: string, stringValue: string): void {
    this.list.push({ key, value: { stringValue } });
  }
  protected addTexts(key: string, texts: readonly string[]): void {
    const values = texts.map((stringValue) => ({ stringValue }));
    this.list.push({ key, value: { arrayValue: { values } } });
  }
  protected addInteger(key: string, value: number): void {
    this.list.push({ key, value: { intValue: String(value) } });
  }
  protected addBoolean(key: string, boolValue: boolean): void {
    this.list.push({ key, value: { boolValue } });
  }
  protected addFloat(key: string, doubleValue: number): void {
    this.list.push({ key, value: { doubleValue } });
  }
}

const truncate = (text: string): string =>
  text.length > MAX_TEXT_LENGTH ? text.slice(0, MAX_TEXT_LENGTH) : text;

/** Converts Unix milliseconds to OTLP nanoseconds. */
export function toNanos(ms: number): string {
  const whole = Math.round(ms);
  return whole > 0 ? `${whole}000000` : "0";
}
