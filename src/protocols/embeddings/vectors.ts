// Vectors, in both forms that clients read: a list of numbers, and base64. What comes is checked against what was asked for,
// since a vector that is missing, moved or of another width would be stored and found nothing ever after.
import { fail } from "../../model/error.ts";
import type { Vector, VectorType } from "../../model/request.ts";
import type { Body } from "../../model/values.ts";
import { list, number } from "../json.ts";
import { under } from "../table.ts";
import { FORM } from "./words.ts";

/** What a client is owed. */
export interface Wish {
  readonly count: number;
  /** Numbers a vector. Absent: it did not say. */
  readonly width: number | undefined;
  readonly dtype: VectorType;
  readonly base64: boolean;
}

export const wishOf = (body: Body): Wish => {
  const width = number(body["dimensions"]) ?? number(body["output_dimension"]);
  const dtype = typeIn(body["output_dtype"]) ?? "float";
  return {
    count: inputsIn(body["input"]).length,
    width: width !== undefined && isPacked(dtype) ? width / 8 : width,
    dtype,
    base64: body[FORM] === "base64",
  };
};

/** A text or the ids of one text stand for themselves. */
export function inputsIn(input: unknown): readonly (string | readonly number[])[] {
  if (typeof input === "string") return [input];
  const all = list(input) as readonly (string | number | readonly number[])[];
  return typeof all[0] === "number" ? [all as readonly number[]] : (all as readonly string[]);
}

const TYPES: { readonly [type in VectorType]: 1 | 4 } = {
  float: 4,
  int8: 1,
  uint8: 1,
  binary: 1,
  ubinary: 1,
};

export const typeIn = (said: unknown): VectorType | undefined =>
  under(TYPES, said) === undefined ? undefined : (said as VectorType);

const isPacked = (type: VectorType): boolean => type === "binary" || type === "ubinary";

/** Undefined: it is no vector. */
export function vectorOf(said: unknown): Vector | undefined {
  const values = typeof said === "string" && isBase64(said) ? said : numbersIn(said);
  return values === undefined ? undefined : { values };
}

/** Padded, as encoders write it. */
const isBase64 = (said: string): boolean =>
  said.length > 0 && said.length % 4 === 0 && CHARACTERS.test(said);

const CHARACTERS = /^[A-Za-z0-9+/]*={0,2}$/;

function numbersIn(said: unknown): readonly number[] | undefined {
  if (!Array.isArray(said) || said.length === 0) return undefined;
  for (const one of said as unknown[]) if (!Number.isFinite(one)) return undefined;
  return said as number[];
}

/** Of bytes that are no whole number of numbers it is none. */
const widthOf = ({ values }: Vector, dtype: VectorType): number =>
  typeof values === "string" ? Buffer.byteLength(values, "base64") / TYPES[dtype] : values.length;

/** Throws what makes an answer no answer to this request. */
export function checked(vectors: readonly (Vector | undefined)[], wish: Wish): readonly Vector[] {
  if (vectors.length !== wish.count)
    refuse(`${vectors.length} vectors for ${wish.count} inputs`, "vectors_missing");
  let width = wish.width;
  for (const vector of vectors) {
    if (!vector) return refuse("something that is no vector", "bad_vector");
    const own = widthOf(vector, vector.dtype ?? wish.dtype);
    if (!Number.isInteger(own)) refuse("something that is no vector", "bad_vector");
    if (own !== (width ??= own))
      refuse(
        `a vector of ${own} numbers where ${wish.width === undefined ? "others have" : "the request wants"} ${width}`,
        "wrong_dimensions",
      );
  }
  return vectors as readonly Vector[];
}

const refuse = (what: string, code: string): never =>
  fail("upstream", `The provider answered with ${what}.`, { code });

/** As the client asked for it. */
export function written(vector: Vector, wish: Wish): readonly number[] | string {
  const { values, dtype = wish.dtype } = vector;
  if (typeof values === "string") return wish.base64 ? values : numbersOf(values, dtype);
  return wish.base64 ? base64Of(values, dtype) : values;
}

/** Whether it is in the form that the client asked for. */
export const isWritten = ({ values }: Vector, { base64 }: Wish): boolean =>
  (typeof values === "string") === base64;

/** What no JSON can write is no number. */
function numbersOf(base64: string, dtype: VectorType): readonly number[] {
  const bytes = Buffer.from(base64, "base64");
  const read = READ[dtype];
  const each = TYPES[dtype];
  const numbers: number[] = [];
  for (let at = 0; at < bytes.length; at += each) {
    const one = read(bytes, at);
    if (!Number.isFinite(one)) refuse("something that is no vector", "bad_vector");
    numbers.push(one);
  }
  return numbers;
}

const READ: { readonly [type in VectorType]: (bytes: Buffer, at: number) => number } = {
  float: (bytes, at) => bytes.readFloatLE(at),
  int8: (bytes, at) => bytes.readInt8(at),
  binary: (bytes, at) => bytes.readInt8(at),
  uint8: (bytes, at) => bytes.readUInt8(at),
  ubinary: (bytes, at) => bytes.readUInt8(at),
};

/** Floats are rounded to 32 bits, which is what this form can say; a number that is no byte cannot be said as one. */
function base64Of(numbers: readonly number[], dtype: VectorType): string {
  const each = TYPES[dtype];
  const bytes = Buffer.allocUnsafe(numbers.length * each);
  for (let i = 0; i < numbers.length; i++) {
    const one = numbers[i]!;
    if (each === 4) bytes.writeFloatLE(one, i * 4);
    else if (Number.isInteger(one) && one >= -128 && one <= 255) bytes[i] = one & 255;
    else refuse(`numbers that are no ${dtype}`, "bad_vector");
  }
  return bytes.toString("base64");
}
