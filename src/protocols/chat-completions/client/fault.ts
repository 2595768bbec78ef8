// An upstream's error as this protocol's clients know it, and what is one in an answer that began as a success.
import { parseShallow } from "../../../lib/json/json-scanner.ts";
import { fail, type ErrorKind, type Fault } from "../../../model/error.ts";
import type { HeadersIn, JsonObject } from "../../../plugin/index.ts";
import { parseError, parseErrorBody } from "../../failure/parse-error.ts";
import { asList, asNumber, asObject } from "../../json-values.ts";

/** Where upstream has no code of its own. */
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

/** An error inside an answer that began as a success. */
export function throwFault(answer: JsonObject): never {
  const { kind, message, ...more } = withCode(parseErrorBody(answer), "upstream_error");
  return fail(kind, message, more);
}

/** Whether a chunk or an answer is really an error. */
export function isErrorObject(answer: JsonObject): boolean {
  if (answer["error"] !== undefined && answer["error"] !== null && answer["error"] !== false)
    return true;
  if (answer["object"] === "error") return true;
  // One vendor's own envelope, with status 200 around it.
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
    fail("upstream", "The provider's answer contains something that is not JSON.", {
      code: "malformed_answer",
    })
  );
}

/** Blank bytes before an answer are a way of keeping the line open. */
export function firstByte(chunk: Buffer): number | undefined {
  for (const byte of chunk) if (byte > 32) return byte;
  return undefined;
}
