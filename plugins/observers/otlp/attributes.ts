// Attributes, as OTLP has them: what is undefined is not there.

/** A text's end is cut: clients choose some of them. */
const MOST = 256;

type Value = string | number | boolean | readonly string[];

export interface OtlpAttribute {
  readonly key: string;
  readonly value: object;
}

export class Attributes {
  readonly list: OtlpAttribute[] = [];

  /** A whole number is an integer. */
  add(key: string, value: Value | undefined): this {
    if (value !== undefined) this.list.push({ key, value: valueOf(value) });
    return this;
  }

  /** The same under each of its names. */
  each(keys: readonly string[], value: Value | undefined): this {
    for (const key of keys) this.add(key, value);
    return this;
  }

  /** A number of one type, whatever its value. */
  double(key: string, value: number | undefined): this {
    if (value !== undefined) this.list.push({ key, value: { doubleValue: value } });
    return this;
  }

  all(of: { readonly [key: string]: string | undefined }, prefix = ""): this {
    for (const key in of) this.add(prefix + cut(key), of[key]);
    return this;
  }
}

const cut = (text: string): string => (text.length > MOST ? text.slice(0, MOST) : text);

function valueOf(value: Value): object {
  if (typeof value === "string") return { stringValue: cut(value) };
  if (typeof value === "boolean") return { boolValue: value };
  if (typeof value === "number")
    return Number.isSafeInteger(value) ? { intValue: String(value) } : { doubleValue: value };
  return { arrayValue: { values: value.map((each) => ({ stringValue: cut(each) })) } };
}

/** Unix milliseconds as OTLP's nanoseconds. */
export const nanos = (ms: number): string => `${Math.round(ms)}000000`;

/** Nano-dollars as "0.001234": money is no float. */
export function usd(nano: bigint): string {
  const sign = nano < 0n ? "-" : "";
  const digits = `${nano < 0n ? -nano : nano}`.padStart(10, "0");
  const part = digits.slice(-9).replace(/0+$/, "");
  return `${sign}${digits.slice(0, -9)}${part === "" ? "" : `.${part}`}`;
}
