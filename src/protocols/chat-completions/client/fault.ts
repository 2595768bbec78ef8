// An upstream's error as this protocol's clients know it, and what is one in an answer that began as a success.
import { parseShallow } from "../../../lib/json.ts";
import { fail, type ErrorKind, type Fault } from "../../../model/error.ts";
import type { HeadersIn, JsonObject } from "../../../plugin/index.ts";
import { failure, failureIn } from "../../failure/failure.ts";
import { list, number, object } from "../../json.ts";

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

const coded = (said: Fault, otherwise?: string): Fault => {
  const code = said.code ?? CODES[said.kind] ?? otherwise;
  return code === undefined ? said : { ...said, code };
};

export const fault = (status: number, headers: HeadersIn, body: Buffer): Fault =>
  coded(failure(status, headers, body));

/** An error inside an answer that began as a success. */
export function throwFault(answer: JsonObject): never {
  const { kind, message, ...more } = coded(failureIn(answer), "upstream_error");
  return fail(kind, message, more);
}

/** Whether a chunk or an answer is really an error. */
export function isError(answer: JsonObject): boolean {
  if (answer["error"] !== undefined && answer["error"] !== null && answer["error"] !== false)
    return true;
  if (answer["object"] === "error") return true;
  // One vendor's own envelope, with status 200 around it.
  const base = object(answer["base_resp"]);
  return (number(base?.["status_code"]) ?? 0) !== 0;
}

export function parsed(text: string): JsonObject {
  let value: unknown;
  try {
    value = parseShallow(text);
  } catch {
    value = undefined;
  }
  const chunk = object(value) ?? object(list(value)[0]);
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
