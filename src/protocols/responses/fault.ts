// Errors: the service's in this protocol's shape, and an upstream's as the service's.
import { BY_STATUS } from "../status.ts";
import { ERRORS, fail, type ErrorKind, type Fault } from "../../model/error.ts";
import type { HeadersIn, JsonObject, Opt, Refusal } from "../../plugin/index.ts";
import { retryAfter } from "../retry.ts";
import { list, number, object, parsed, present, text } from "./wire.ts";

/** This protocol's type and code; a code of the fault's own is more precise. */
const WORDS: Readonly<Record<ErrorKind, readonly [type: string, code: string | null]>> = {
  invalid: ["invalid_request_error", null],
  context_length: ["invalid_request_error", "context_length_exceeded"],
  content_policy: ["invalid_request_error", "content_policy_violation"],
  unsupported: ["invalid_request_error", "unsupported_parameter"],
  unauthenticated: ["authentication_error", "invalid_api_key"],
  forbidden: ["permission_error", null],
  privacy: ["permission_error", null],
  not_found: ["invalid_request_error", null],
  conflict: ["conflict_error", null],
  too_large: ["invalid_request_error", "request_too_large"],
  quota: ["insufficient_quota", "insufficient_quota"],
  rate_limited: ["rate_limit_error", "rate_limit_exceeded"],
  overloaded: ["server_error", "overloaded"],
  timeout: ["timeout_error", "timeout"],
  upstream: ["server_error", "upstream_error"],
  upstream_auth: ["server_error", "upstream_auth_error"],
  upstream_quota: ["server_error", "upstream_quota_error"],
  attestation: ["server_error", "attestation_failed"],
  unavailable: ["server_error", "unavailable"],
  canceled: ["server_error", "canceled"],
  internal: ["server_error", "internal_error"],
};

export function fault(f: Fault, x: { id: string }): Refusal {
  const [type, code] = WORDS[f.kind];
  const message = wording(f, x.id);
  return {
    status: ERRORS[f.kind][0],
    body: {
      error: present({
        message,
        type,
        param: f.param ?? null,
        code: f.code ?? code,
        details: f.details,
      }),
    },
  };
}

/** What went wrong inside is for the log; the client gets the id that finds it there. */
const wording = (f: Fault, id: string): string =>
  f.kind === "internal" ? `Something went wrong inside the gateway. Reference: ${id}` : f.message;

/** Words by which clients of this protocol decide whether to try again, compact, or give up. */
const STREAMED: Readonly<Partial<Record<ErrorKind, string>>> = {
  rate_limited: "rate_limit_exceeded",
  quota: "insufficient_quota",
  context_length: "context_length_exceeded",
  content_policy: "invalid_prompt",
  invalid: "invalid_prompt",
  unsupported: "invalid_prompt",
  overloaded: "server_is_overloaded",
};
const KNOWN = new Set([
  "server_error",
  "usage_not_included",
  "slow_down",
  ...Object.values(STREAMED),
]);

export interface Failure {
  /** The `error` event: some readers take the flat form, some the nested one. */
  event: JsonObject;
  /** The same in `response.error`. */
  error: { code: string; message: string };
}

/** A failure once the stream has begun: no status is left to say it with. */
export function failure(f: Fault, x: { id: string }): Failure {
  const known = f.code !== undefined && KNOWN.has(f.code);
  const code = known ? f.code! : (STREAMED[f.kind] ?? "server_error");
  const message = wording(f, x.id);
  const type = WORDS[f.kind][0];
  return {
    event: { code, message, param: null, error: { type, code, message, param: null } },
    error: { code, message },
  };
}

const BY_CODE: Readonly<Record<string, ErrorKind>> = {
  context_length_exceeded: "context_length",
  string_above_max_length: "invalid",
  content_policy_violation: "content_policy",
  image_content_policy_violation: "content_policy",
  content_filter: "content_policy",
  bio_policy: "content_policy",
  insufficient_quota: "upstream_quota",
  usage_not_included: "upstream_quota",
  billing_hard_limit_reached: "upstream_quota",
  billing_not_active: "upstream_quota",
  invalid_api_key: "upstream_auth",
  rate_limit_exceeded: "rate_limited",
  slow_down: "overloaded",
  server_is_overloaded: "overloaded",
  overloaded: "overloaded",
  invalid_prompt: "invalid",
  model_not_found: "not_found",
};

const CONTEXT =
  /context_length_exceeded|maximum context length|context window|prompt is too long|input is too long|too many (?:input )?tokens/i;
const MONEY = /insufficient (?:balance|credits?|quota)|exceeded your current quota|credit balance/i;

export function upstreamFault(status: number, headers: HeadersIn, body: Buffer): Fault {
  const said = body.toString("utf8");
  const json = parsed(said) ?? parsed(said.replace(/^\s*\[|\]\s*$/g, ""));
  const plain = said.trim();
  const words = json ? undefined : plain === "" || plain.startsWith("<") ? "" : plain.slice(0, 500);
  const byStatus = BY_STATUS[status] ?? (status >= 500 ? "upstream" : "invalid");
  return {
    ...meant(json ?? { message: words ?? "" }, byStatus, `status ${status}`),
    retryAfterMs: retryAfter(headers),
  };
}

/** An error where an answer should be: an event of a stream, a failed response, or a body under a 200. */
export function thrown(said: JsonObject): never {
  const { kind, message, ...more } = meant(said, "upstream", "an error and no words");
  return fail(kind, message, more);
}

/** Everybody who speaks this wire has an error shape: nested, in a list, flat, or only words. */
function meant(said: JsonObject, byStatus: ErrorKind, otherwise: string): Fault {
  const error = object(said["error"]) ?? object(list(said["errors"])[0]) ?? said;
  const message =
    text(error["message"]) ||
    text(said["error"]) ||
    text(said["message"]) ||
    text(said["detail"]) ||
    list(said["detail"]).flatMap((d) => text(object(d)?.["msg"]) ?? [])[0] ||
    `The provider answered with ${otherwise}.`;
  const code = text(error["code"]) ?? numbered(error["code"]);
  const byCode = code === undefined || !Object.hasOwn(BY_CODE, code) ? undefined : BY_CODE[code];
  let kind = byCode ?? kindOf(number(error["code"])) ?? byStatus;
  if ((kind === "invalid" || kind === "too_large" || kind === "upstream") && CONTEXT.test(message))
    kind = "context_length";
  if (kind === "rate_limited" && MONEY.test(message)) kind = "upstream_quota";
  return present({ kind, message, code, param: text(error["param"]) });
}

const numbered = (code: unknown): string | undefined => number(code)?.toString();
const kindOf = (status: Opt<number>): ErrorKind | undefined =>
  status === undefined ? undefined : BY_STATUS[status];
