// Attributes, as OTLP has them: what is undefined is not there.

/** A text's end is cut: clients choose some of them. */
const MOST = 256;

type Value = string | number | boolean | readonly string[];

/** Where attributes are said: a list as JSON has it, or the bytes that they will be. */
export abstract class Attributes {
  /** As the field of a message has them. */
  abstract get written(): unknown;
  /** A text that many have alike. */
  protected abstract word(key: string, text: string): void;
  /** A text of this one alone. */
  protected abstract text(key: string, text: string): void;
  protected abstract texts(key: string, texts: readonly string[]): void;
  protected abstract whole(key: string, value: number): void;
  protected abstract flag(key: string, value: boolean): void;
  protected abstract float(key: string, value: number): void;

  /** A whole number is an integer. */
  add(key: string, value: Value | undefined): this {
    if (value === undefined) return this;
    if (typeof value === "string") this.word(key, cut(value));
    else if (typeof value === "boolean") this.flag(key, value);
    else if (typeof value !== "number") this.texts(key, value.map(cut));
    else if (Number.isSafeInteger(value)) this.whole(key, value);
    else this.float(key, value);
    return this;
  }

  /** Such as an id: none other has it. */
  once(key: string, value: string | undefined): this {
    if (value !== undefined) this.text(key, cut(value));
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
    for (const key in of) this.once(prefix + cut(key), of[key]);
    return this;
  }
}

export interface OtlpAttribute {
  readonly key: string;
  readonly value: object;
}

export class ListedAttributes extends Attributes {
  readonly list: OtlpAttribute[] = [];

  get written(): readonly OtlpAttribute[] {
    return this.list;
  }

  protected word(key: string, stringValue: string): void {
    this.list.push({ key, value: { stringValue } });
  }
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
export const nanos = (ms: number): string => `${Math.round(ms)}000000`;

/** Nano-dollars as "0.001234": money is no float. */
export function usd(nano: bigint): string {
  if (nano === 0n) return "0";
  const sign = nano < 0n ? "-" : "";
  const digits = `${nano < 0n ? -nano : nano}`.padStart(10, "0");
  const part = digits.slice(-9).replace(/0+$/, "");
  return `${sign}${digits.slice(0, -9)}${part === "" ? "" : `.${part}`}`;
}
