// Values of headers that mirror fields of the body.
import type { JsonObject } from "tollgate/plugin";
import { argumentAt, type HeaderArgument } from "./list-entries.ts";

const PREFIX = "=?base64?";
const SUFFIX = "?=";
/** Visible ASCII, with spaces and tabs inside. */
const PLAIN = /^[\x21-\x7e](?:[\t\x20-\x7e]*[\x21-\x7e])?$/;
const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/;

/** Encodes a value for a header. */
export function encodeHeaderValue(value: string): string {
  const isPlain = PLAIN.test(value) && !(value.startsWith(PREFIX) && value.endsWith(SUFFIX));
  return isPlain ? value : `${PREFIX}${Buffer.from(value).toString("base64")}${SUFFIX}`;
}

/** Decodes the value of a header. Returns undefined if it is not valid. */
export function decodeHeaderValue(value: string): string | undefined {
  if (!value.startsWith(PREFIX) || !value.endsWith(SUFFIX))
    return /^[\t\x20-\x7e]*$/.test(value) ? value : undefined;
  const encoded = value.slice(PREFIX.length, -SUFFIX.length);
  if (!BASE64.test(encoded) || encoded.length % 4 !== 0) return undefined;
  return Buffer.from(encoded, "base64").toString("utf8");
}

/** Returns the headers that mirror arguments of a call. */
export function mirrorArguments(
  mirrored: readonly HeaderArgument[],
  values: JsonObject,
): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const { header, path } of mirrored) {
    const value = argumentAt(values, path);
    if (value !== undefined && typeof value !== "object")
      headers[header] = encodeHeaderValue(String(value));
  }
  return headers;
}

/** Whether a header mirrors a value. Numbers are compared as numbers. */
export function matchesHeader(header: string | undefined, value: unknown): boolean {
  if (value === undefined || typeof value === "object") return header === undefined;
  const decoded = header === undefined ? undefined : decodeHeaderValue(header);
  if (decoded === undefined) return false;
  return typeof value === "number"
    ? decoded.trim() !== "" && Number(decoded) === value
    : decoded === String(value);
}
