// Parses provider errors of any form. Servers do not always use the error form of their protocol,
// so all protocols share this parser and it accepts all forms.
import { fail, type Fault, type ErrorKind } from "../../model/error.ts";
import type { HeadersIn, Json, JsonObject } from "../../model/values.ts";
import { asList, asObject, asObjects, parseObject } from "../json-values.ts";
import { readRetryAfterMs, parseDelayText } from "./retry-delay.ts";

/**
 * Maximum length of an error message, in characters. A longer text is a web page, not a message.
 */
const MAX_MESSAGE = 2000;

const DAY_MS = 24 * 3600_000;

const text = (v: unknown): string | undefined =>
  typeof v === "string" && v !== "" ? v : undefined;

interface ErrorFields {
  message?: string | undefined;
  code?: string | undefined;
  /** Status that is repeated in the body. In the middle of a response, it is the only status. */
  status?: number | undefined;
  /** Codes, types, and reasons, most specific first. */
  names: readonly string[];
  param?: string | undefined;
  details?: JsonObject | undefined;
  waitMs?: number | undefined;
}

/** Parses a response with an error status. */
export function parseError(status: number, headers: HeadersIn, body: Buffer): Fault {
  const error = readErrorFields(body, status);
  const fault = toFault(error, status, `The provider returned status ${status} without a message.`);
  const again = status === 429 || status === 408 || status === 498 || status >= 500;
  // The client also reads the delay in the message. The longest of the stated delays is used.
  const waits = [
    error.waitMs,
    ...(again ? [readRetryAfterMs(headers), parseDelayText(fault.message)] : []),
  ];
  const delays = waits.filter((ms) => ms !== undefined);
  return delays.length === 0 ? fault : { ...fault, retryAfterMs: Math.max(...delays) };
}

/** Parses an error in place of a response, in a stream or with status 200. */
export function parseErrorBody(body: Json | undefined): Fault {
  const error = readErrorObject(asObject(body) ?? asObject(asList(body)[0]) ?? {}, 200);
  const fault = toFault(error, error.status ?? 0, "The provider ended its response with an error.");
  return error.status === undefined ? fault : { code: String(error.status), ...fault };
}

export function throwParsedError(body: Json | undefined): never {
  const { kind, message, ...more } = parseErrorBody(body);
  return fail(kind, message, more);
}

/**
 * Parses a response, or one object of a streamed response. If it is an error in place of a result,
 * the error is thrown.
 *
 * @param result Field that contains the result.
 */
export function parseResponseObject(json: string, result: string): JsonObject {
  const answer = parseObject(json);
  if (!answer)
    return fail("upstream", "The provider's response is not a JSON object.", {
      code: "bad_answer",
    });
  if (answer["error"] !== undefined && answer["error"] !== null && !answer[result])
    throwParsedError(answer);
  return answer;
}

/** Throws because a response broke off. */
export const failTruncated = (): never =>
  fail("upstream", "The provider's response ended before it was complete.", { code: "truncated" });

function toFault(error: ErrorFields, status: number, otherwise: string): Fault {
  const message = (error.message ?? otherwise).slice(0, MAX_MESSAGE);
  return {
    kind: classifyError(status, error.names, `${message} ${error.names.join(" ")}`),
    message,
    ...(error.code !== undefined && { code: error.code }),
    ...(error.param !== undefined && { param: error.param }),
    ...(error.details && { details: error.details }),
  };
}

function readErrorFields(body: Buffer, status: number): ErrorFields {
  const bodyText = body.toString();
  let parsed: unknown;
  try {
    parsed = JSON.parse(bodyText);
  } catch {
    // A long body was truncated before it arrived here. If the text is not JSON, it is a proxy's
    // web page or plain text.
    if (/^\s*[[{]/.test(bodyText)) parsed = repairTruncatedJson(bodyText);
  }
  const json = asObject(parsed) ?? asObject(asList(parsed)[0]);
  if (json) return readErrorObject(json, status);
  const plain = bodyText.trim();
  // A proxy's web page is not useful to the client.
  const words = plain === "" || /^[<{]/.test(plain) ? undefined : plain.slice(0, MAX_MESSAGE);
  return { names: [], message: words };
}

function readErrorObject(body: JsonObject, status: number): ErrorFields {
  const error = asObject(body["error"]) ?? asObject(asList(body["errors"])[0]) ?? body;
  const base = asObject(body["base_resp"]);
  const own = asObject(error["details"]);
  const details = asObjects(error["details"]);
  const metadata = asObject(error["metadata"]);
  const code = error["code"] ?? body["code"] ?? base?.["status_code"];
  const type = text(error["type"]);
  return {
    message:
      messageOf(error["message"]) ??
      text(body["error"]) ??
      messageOf(body["message"]) ??
      text(base?.["status_msg"]) ??
      detailOf(body["detail"]),
    code: codeOf(own?.["error_code"]) ?? codeOf(code),
    status: statusOf(error["code"]) ?? statusOf(error["status"]),
    names: [
      text(own?.["error_code"]),
      codeOf(code),
      // MiniMax's status code is a reliable error name only if the HTTP status is not an error
      // status.
      status < 400 && base ? `minimax_${String(base["status_code"])}` : undefined,
      ...details.map((one) => text(one["reason"])),
      ...(details.some(isDaily) ? ["insufficient_quota"] : []),
      ...(asList(metadata?.["reasons"]).length > 0 ? ["content_policy_violation"] : []),
      text(metadata?.["error_type"]),
      text(error["error_type"]),
      type === "error" ? undefined : type,
      text(error["status"]),
    ].filter((name) => name !== undefined),
    param: text(error["param"]) ?? violatedQuota(details),
    details: own,
    waitMs: details.map((one) => seconds(one["retryDelay"])).find((ms) => ms !== undefined),
  };
}

/** Returns the error code. A number that repeats the HTTP status is ignored. */
const codeOf = (code: unknown): string | undefined =>
  typeof code === "number" ? (code >= 100 && code < 600 ? undefined : String(code)) : text(code);

const statusOf = (code: unknown): number | undefined => {
  const n = typeof code === "string" && /^\d{3}$/.test(code) ? Number(code) : code;
  return typeof n === "number" && n >= 400 && n < 600 ? n : undefined;
};

const messageOf = (value: Json | undefined): string | undefined =>
  typeof value === "object" && value !== null
    ? JSON.stringify(value).slice(0, MAX_MESSAGE)
    : text(value);

/** Returns the message of a validation error, which lists the rejected fields with their paths. */
function detailOf(detail: Json | undefined): string | undefined {
  const [first] = asObjects(detail);
  const message = text(first?.["msg"]);
  if (message === undefined) return messageOf(detail);
  const path = asList(first?.["loc"])
    .filter((part) => part !== "body")
    .join(".");
  return path === "" ? message : `${path}: ${message}`;
}

/**
 * Whether a daily quota is exhausted. Waiting until the next day is not useful, but another
 * credential may have quota left today.
 */
const isDaily = (detail: JsonObject): boolean =>
  asObjects(detail["violations"]).some((one) => /PerDay/i.test(text(one["quotaId"]) ?? ""));

const violatedQuota = (details: readonly JsonObject[]): string | undefined =>
  text(details.flatMap((one) => asObjects(one["fieldViolations"]))[0]?.["field"]);

/** "34s", "0.5s" */
function seconds(delay: unknown): number | undefined {
  const n = Number(/^(\d+(?:\.\d+)?)s$/.exec(text(delay) ?? "")?.[1] ?? Number.NaN);
  return n >= 0 ? Math.min(Math.round(n * 1000), DAY_MS) : undefined;
}

/**
 * Parses truncated JSON as far as possible. Open brackets and strings are closed, and incomplete
 * members are dropped. Returns undefined if nothing can be parsed.
 */
function repairTruncatedJson(text: string): unknown {
  for (const upTo of [text.length, lastCompleteEnd(text)]) {
    try {
      return JSON.parse(closeOpenBrackets(text.slice(0, upTo)));
    } catch {
      // The text may end in a key without a value or in half a number. The next attempt ends at the
      // last complete member.
    }
  }
  return undefined;
}

interface Scan {
  /** Closing brackets of all open brackets, innermost last. */
  open: string[];
  inString: boolean;
  /** Offset at which the last complete member or bracket ended. */
  lastCompleteAt: number;
}

function scanPrefix(text: string): Scan {
  const at: Scan = { open: [], inString: false, lastCompleteAt: 0 };
  for (let i = 0; i < text.length; i++) {
    const c = text[i];
    if (at.inString) {
      if (c === "\\") i++;
      else if (c === '"') at.inString = false;
    } else if (c === '"') at.inString = true;
    else if (c === "{" || c === "[") {
      at.open.push(c === "{" ? "}" : "]");
      at.lastCompleteAt = i + 1;
    } else if (c === "}" || c === "]") {
      at.open.pop();
      at.lastCompleteAt = i + 1;
    } else if (c === ",") at.lastCompleteAt = i;
  }
  return at;
}

const lastCompleteEnd = (text: string): number => scanPrefix(text).lastCompleteAt;

function closeOpenBrackets(text: string): string {
  const { open, inString } = scanPrefix(text);
  // An incomplete escape sequence has no meaning yet, so it is removed.
  const prefix = inString ? `${text.replace(/\\(?:u[\da-f]{0,3})?$/i, "")}"` : text;
  return prefix + open.toReversed().join("");
}

// Classifies provider errors with one vocabulary for all protocols. Providers of one protocol use
// error names of another, and proxies in front of them use their own names.
//
// A fact about an account or a target is accepted only from a machine-readable source: status,
// type, or code. Message text only distinguishes errors of the request itself. It may quote what
// the client wrote, and one client's text must not change the routing of other requests.

const KIND_BY_STATUS: Readonly<Record<number, ErrorKind>> = {
  400: "invalid",
  401: "upstream_auth",
  402: "upstream_quota",
  403: "upstream_auth",
  404: "not_found",
  408: "timeout",
  409: "conflict",
  413: "too_large",
  422: "invalid",
  429: "rate_limited",
  498: "overloaded",
  503: "overloaded",
  504: "timeout",
  522: "timeout",
  524: "timeout",
  529: "overloaded",
};

const names = (kind: ErrorKind, sentence: string): [string, ErrorKind][] =>
  sentence.split(" ").map((name) => [name, kind]);

/** Error kinds by type, code, status name, or reason of all vendors, in lower case. */
const KIND_BY_NAME: ReadonlyMap<string, ErrorKind> = new Map([
  ...names(
    "upstream_auth",
    "authentication_error invalid_api_key unauthenticated permission_error permission_denied account_deactivated " +
      "organization_on_hold unsupported_country_region_territory minimax_1004 minimax_2049",
  ),
  ...names(
    "upstream_quota",
    "billing_error insufficient_quota insufficient_credits insufficient_balance usage_not_included arrearage " +
      "billing_hard_limit_reached billing_not_active enforced_spend_limit_reached exceeded_current_quota_error minimax_1008",
  ),
  ...names(
    "rate_limited",
    "rate_limit_error rate_limit_exceeded rate_limited rate_limit too_many_requests resource_exhausted minimax_1002",
  ),
  ...names(
    "overloaded",
    "overloaded_error overloaded engine_overloaded_error server_is_overloaded slow_down unavailable service_unavailable",
  ),
  ...names("timeout", "timeout_error deadline_exceeded"),
  ...names("context_length", "context_length_exceeded exceed_context_size_error prompt_too_long"),
  ...names(
    "content_policy",
    "content_filter content_policy_violation image_content_policy_violation image_generation_user_error " +
      "moderation_blocked bio_policy data_inspection_failed minimax_1026 minimax_1027",
  ),
  ...names("not_found", "not_found_error model_not_found not_found"),
  ...names("conflict", "conflict_error aborted already_exists"),
  ...names("too_large", "request_too_large"),
  ...names(
    "invalid",
    "invalid_request_error invalid_argument failed_precondition out_of_range invalid_prompt string_above_max_length",
  ),
  ...names("unsupported", "unimplemented"),
  ...names("upstream", "api_error server_error internal unknown data_loss cancelled"),
]);

/**
 * Matches reasons that concern the account. Some providers reject a wrong key, or a key used from a
 * wrong location, with status 400 and put the reason in the body.
 */
const ACCOUNT_REASON = /^(?:api_key|account|consumer|service)_/;

const namedIn = (names: readonly string[]): ErrorKind | undefined => {
  let vague: ErrorKind | undefined;
  for (const name of names) {
    const small = name.toLowerCase();
    const kind =
      KIND_BY_NAME.get(small) ?? (ACCOUNT_REASON.test(small) ? "upstream_auth" : undefined);
    if (kind !== undefined && kind !== "invalid" && kind !== "upstream") return kind;
    vague ??= kind;
  }
  return vague;
};

/**
 * Error kinds that are determined by the status and that an error name can override, each with the
 * overriding kinds. Proxies replace the status of one of these failures by the status of another.
 * For any other status, the error name is ignored.
 */
const OVERRIDABLE_KINDS: { readonly [K in ErrorKind]?: "all" | readonly ErrorKind[] } = {
  invalid: "all",
  upstream: "all",
  upstream_auth: ["upstream_quota", "content_policy"],
  rate_limited: ["upstream_quota", "overloaded"],
  too_large: ["context_length"],
};

/**
 * Matches messages of many vendors about a request that exceeds the context length, to distinguish
 * it from an invalid request.
 */
const CONTEXT_LENGTH_TEXT =
  /prompt is too long|prompt_too_long|context[_ ](?:length|limit|window)|maximum context|(?:input|prompt)(?: \w+)? is too long|exceeds the maximum number of tokens|exceed_context_size|available context size|too many (?:input )?tokens|reduce the length/i;
const CONTENT_POLICY_TEXT =
  /content[_ ](?:policy|filter)|content filtering policy|content management policy|safety (?:system|policy)|data_inspection/i;

/**
 * Returns the kind of an error.
 *
 * @param status HTTP status. 0 in the middle of a response, where there is none.
 * @param named Error names, most specific first.
 */
function classifyError(status: number, named: readonly string[], prose: string): ErrorKind {
  const byStatus =
    KIND_BY_STATUS[status] ?? (status >= 400 && status < 500 ? "invalid" : ("upstream" as const));
  const byName = namedIn(named);
  const yields = OVERRIDABLE_KINDS[byStatus];
  const kind =
    byName !== undefined && (yields === "all" || yields?.includes(byName)) ? byName : byStatus;
  if (kind !== "invalid" && kind !== "too_large" && kind !== "upstream") return kind;
  if (CONTEXT_LENGTH_TEXT.test(prose)) return "context_length";
  return kind === "invalid" && CONTENT_POLICY_TEXT.test(prose) ? "content_policy" : kind;
}
