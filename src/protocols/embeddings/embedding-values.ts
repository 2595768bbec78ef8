// Encodes, decodes, and validates vectors, as lists of numbers and as base64. Responses are
// validated against the request. A missing, misplaced, or wrongly sized vector would be stored by
// the client and would silently break its searches.
import { fail } from "../../model/error.ts";
import type { Embedding, EmbeddingDataType } from "../../model/request.ts";
import type { Body } from "../../model/values.ts";
import { asNumber, ownEntry } from "../json-values.ts";
import { ENCODING_FORMAT, inputsIn } from "./spec.ts";

/** The form of the response that the client requested. */
export interface EmbeddingExpectation {
  readonly count: number;
  /** Numbers per vector. Undefined: the request does not specify it. */
  readonly dimensions: number | undefined;
  readonly dtype: EmbeddingDataType;
  readonly base64: boolean;
}

export const readExpectation = (body: Body): EmbeddingExpectation => {
  const width = asNumber(body["dimensions"]) ?? asNumber(body["output_dimension"]);
  const dtype = parseDataType(body["output_dtype"]) ?? "float";
  return {
    count: inputsIn(body["input"]).length,
    dimensions: width !== undefined && isPacked(dtype) ? width / 8 : width,
    dtype,
    base64: body[ENCODING_FORMAT] === "base64",
  };
};

const BYTES_PER_NUMBER: { readonly [type in EmbeddingDataType]: 1 | 4 } = {
  float: 4,
  int8: 1,
  uint8: 1,
  binary: 1,
  ubinary: 1,
};

export const parseDataType = (value: unknown): EmbeddingDataType | undefined =>
  ownEntry(BYTES_PER_NUMBER, value) === undefined ? undefined : (value as EmbeddingDataType);

const isPacked = (type: EmbeddingDataType): boolean => type === "binary" || type === "ubinary";

/** Returns the vector, or undefined if the value is not a vector. */
export function parseEmbedding(value: unknown): Embedding | undefined {
  const values = typeof value === "string" && isBase64(value) ? value : asNumbers(value);
  return values === undefined ? undefined : { values };
}

/** Whether a text is padded base64, as encoders write it. */
const isBase64 = (text: string): boolean =>
  text.length > 0 && text.length % 4 === 0 && CHARACTERS.test(text);

const CHARACTERS = /^[A-Za-z0-9+/]*={0,2}$/;

function asNumbers(value: unknown): readonly number[] | undefined {
  if (!Array.isArray(value) || value.length === 0) return undefined;
  for (const one of value as unknown[]) if (!Number.isFinite(one)) return undefined;
  return value as number[];
}

/**
 * Returns the number of values in a vector. It is fractional if the bytes do not contain a whole
 * number of values.
 */
const dimensionsOf = ({ values }: Embedding, dtype: EmbeddingDataType): number =>
  typeof values === "string"
    ? Buffer.byteLength(values, "base64") / BYTES_PER_NUMBER[dtype]
    : values.length;

/** Returns the vectors. Throws if they do not match the request in number or dimensions. */
export function validateEmbeddings(
  vectors: readonly (Embedding | undefined)[],
  wish: EmbeddingExpectation,
): readonly Embedding[] {
  if (vectors.length !== wish.count)
    failInvalidEmbedding(
      `${vectors.length} embeddings for ${wish.count} inputs`,
      "vectors_missing",
    );
  let width = wish.dimensions;
  for (const vector of vectors) {
    if (!vector) return failInvalidEmbedding("an invalid embedding", "bad_vector");
    const own = dimensionsOf(vector, vector.dtype ?? wish.dtype);
    if (!Number.isInteger(own)) failInvalidEmbedding("an invalid embedding", "bad_vector");
    if (own !== (width ??= own))
      failInvalidEmbedding(
        `an embedding with ${own} numbers where ${wish.dimensions === undefined ? "others have" : "the request wants"} ${width}`,
        "wrong_dimensions",
      );
  }
  return vectors as readonly Embedding[];
}

const failInvalidEmbedding = (what: string, code: string): never =>
  fail("upstream", `The provider returned ${what}.`, { code });

/** Encodes a vector in the form that the client requested. */
export function encodeEmbedding(
  vector: Embedding,
  wish: EmbeddingExpectation,
): readonly number[] | string {
  const { values, dtype = wish.dtype } = vector;
  if (typeof values === "string") return wish.base64 ? values : decodeBase64Numbers(values, dtype);
  return wish.base64 ? encodeBase64Numbers(values, dtype) : values;
}

/** Whether a vector is in the form that the client requested. */
export const isInRequestedFormat = (
  { values }: Embedding,
  { base64 }: EmbeddingExpectation,
): boolean => (typeof values === "string") === base64;

/**
 * Decodes base64 into numbers. Throws if a number is not finite, because JSON cannot represent it.
 */
function decodeBase64Numbers(base64: string, dtype: EmbeddingDataType): readonly number[] {
  const bytes = Buffer.from(base64, "base64");
  const read = READ_NUMBER[dtype];
  const each = BYTES_PER_NUMBER[dtype];
  const numbers: number[] = [];
  for (let at = 0; at < bytes.length; at += each) {
    const one = read(bytes, at);
    if (!Number.isFinite(one)) failInvalidEmbedding("an invalid embedding", "bad_vector");
    numbers.push(one);
  }
  return numbers;
}

const READ_NUMBER: { readonly [type in EmbeddingDataType]: (bytes: Buffer, at: number) => number } =
  {
    float: (bytes, at) => bytes.readFloatLE(at),
    int8: (bytes, at) => bytes.readInt8(at),
    binary: (bytes, at) => bytes.readInt8(at),
    uint8: (bytes, at) => bytes.readUInt8(at),
    ubinary: (bytes, at) => bytes.readUInt8(at),
  };

/**
 * Encodes numbers as base64. Floats are rounded to 32 bits, the precision of this form. Throws if a
 * value of a one-byte type does not fit into a byte.
 */
function encodeBase64Numbers(numbers: readonly number[], dtype: EmbeddingDataType): string {
  const each = BYTES_PER_NUMBER[dtype];
  const bytes = Buffer.allocUnsafe(numbers.length * each);
  for (let i = 0; i < numbers.length; i++) {
    const one = numbers[i]!;
    if (each === 4) bytes.writeFloatLE(one, i * 4);
    else if (Number.isInteger(one) && one >= -128 && one <= 255) bytes[i] = one & 255;
    else failInvalidEmbedding(`numbers that are not ${dtype}`, "bad_vector");
  }
  return bytes.toString("base64");
}
