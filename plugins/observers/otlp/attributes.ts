// Attributes, as OTLP has them: what is undefined is not there.

/** A text's end is cut: clients choose some of them. */
const MOST = 256;

type Value = string | number | boolean | readonly string[];

/** Where attributes are said: a list as JSON has it, or the bytes that they will be. */
export abstract class Attributes {
  protected abstract text(key: string, text: string): void;
  protected abstract texts(key: string, texts: readonly string[]): void;
  protected abstract whole(key: string, value: number): void;
  protected abstract flag(key: string, value: boolean): void;
  protected abstract float(key: string, value: number): void;

  /** A whole number is an integer. */
  add(key: string, value: Value | undefined): this {
    if (value === undefined) return this;
    if (typeof value === "string") this.text(key, cut(value));
    else if (typeof value === "boolean") this.flag(key, value);
    else if (typeof value !== "number") this.texts(key, value.map(cut));
    else if (Number.isSafeInteger(value)) this.whole(key, value);
    else this.float(key, value);
    return this;
  }

  /** The same under each of its names. */
  each(keys: readonly string[], value: Value | undefined): this {
    if (value !== undefined) for (const key of keys) this.add(key, value);
    return this;
  }

  /** A number of one type, whatever its value. */
  double(key: string, value: number | undefined): this {
    if (value !== undefined) this.float(key, value);
    return this;
  }

  all(of: { readonly [key: string]: string | undefined }, prefix = ""): this {
    for (const key in of) this.add(prefix + cut(key), of[key]);
    return this;
  }
}

export interface OtlpAttribute {
  readonly key: string;
  readonly value: object;
}

export class ListedAttributes extends Attributes {
  readonly list: OtlpAttribute[] = [];

  protected text(key: string, stringValue: string): void {
    this.list.push({ key, value: { stringValue } });
  }
  protected texts(key: string, texts: readonly string[]): void {
    const values = texts.map((stringValue) => ({ stringValue }));
    this.list.push({ key, value: { arrayValue: { values } } });
  }
  protected whole(key: string, value: number): void {
    this.list.push({ key, value: { intValue: String(value) } });
  }
  protected flag(key: string, boolValue: boolean): void {
    this.list.push({ key, value: { boolValue } });
  }
  protected float(key: string, doubleValue: number): void {
    this.list.push({ key, value: { doubleValue } });
  }
}

const cut = (text: string): string => (text.length > MOST ? text.slice(0, MOST) : text);

/** Unix milliseconds as OTLP's nanoseconds. */
export function nanos(ms: number): string {
  const whole = Math.round(ms);
  return whole > 0 ? `${whole}000000` : "0";
}
