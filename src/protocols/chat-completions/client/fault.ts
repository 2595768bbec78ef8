// Decodes a provider's error into the form of this protocol, and detects errors in responses with a
// success status.
import { parseShallow } from "../../../lib/json/json-scanner.ts";
import { fail, type ErrorKind, type Fault } from "../../../model/error.ts";
import type { HeadersIn, JsonObject } from "../../../plugin/index.ts";
import { parseError, parseErrorBody } from "../../failure/parse-error.ts";
import { asList, asNumber, asObject } from "../../json-values.ts";

/** Error codes for errors to which the provider assigns no code. */
const CODES: { readonly [K in ErrorKind]?: string } = {
  context_length: "context_length_exceeded",
  content_policy: "content_policy_violation",
  not_found: "model_not_found",
  upstream_auth: "upstream_auth",
  upstream_quota: "upstream_quota",
  rate_limited: "rate_limit_exceeded",
  overloaded: "overloaded",
};

const withCode = (parsedFault: Fault, otherwise?: string): Fault => {
  const code = parsedFault.code ?? CODES[parsedFault.kind] ?? otherwise;
  return code === undefined ? parsedFault : { ...parsedFault, code };
};

export const decodeFault = (status: number, headers: HeadersIn, body: Buffer): Fault =>
  withCode(parseError(status, headers, body));

/** Throws the error that a response with a success status contains. */
export function throwFault(answer: JsonObject): never {
  const { kind, message, ...more } = withCode(parseErrorBody(answer), "upstream_error");
  return fail(kind, message, more);
}

/** Whether a chunk or response is an error. */
export function isErrorObject(answer: JsonObject): boolean {
  if (answer["error"] !== undefined && answer["error"] !== null && answer["error"] !== false)
    return true;
  if (answer["object"] === "error") return true;
  // One vendor reports errors in its own envelope, with status 200.
  const base = asObject(answer["base_resp"]);
  return (asNumber(base?.["status_code"]) ?? 0) !== 0;
}

export function parsed(text: string): JsonObject {
  let value: unknown;
  try {
    value = parseShallow(text);
  } catch {
    value = undefined;
  }
  const chunk = asObject(value) ?? asObject(asList(value)[0]);
  return (
    chunk ??
    fail("upstream", "The provider's response contains invalid JSON.", {
      code: "malformed_answer",
    })
  );
}

/**
 * Returns the first non-whitespace byte. Backends send whitespace before a response to keep the
 * connection open.
 */
export function firstByte(chunk: Buffer): number | undefined {
  for (const byte of chunk) if (byte > 32) return byte;
  return undefined;
}
