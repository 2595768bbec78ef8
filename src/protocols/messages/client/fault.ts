import { BY_STATUS } from "../../status.ts";
import { fail, type ErrorKind, type Fault } from "../../../model/error.ts";
import type { HeadersIn, Json, JsonObject } from "../../../model/values.ts";
import { retryAfter } from "../../retry.ts";
import { isObject, str } from "../words.ts";

/** By the protocol's own type: it says more than a status that a proxy may have changed. */
const BY_TYPE: Record<string, ErrorKind> = {
  invalid_request_error: "invalid",
  authentication_error: "upstream_auth",
  permission_error: "upstream_auth",
  billing_error: "upstream_quota",
  not_found_error: "not_found",
  conflict_error: "conflict",
  request_too_large: "too_large",
  rate_limit_error: "rate_limited",
  timeout_error: "timeout",
  overloaded_error: "overloaded",
  api_error: "upstream",
};

/** One meaning, many vendors: a request that does not fit is told apart from one that is wrong, by its words. */
const CONTEXT =
  /prompt is too long|prompt_too_long|exceeds? (?:the )?context (?:limit|window|length)|maximum context length|context_length_exceeded|input is too long|exceeds the maximum number of tokens|exceed_context_size|too many (?:input )?tokens/i;
const POLICY = /content filtering policy|content[_ ]policy|safety (?:system|policy)/i;
const MONEY =
  /credit balance|insufficient (?:balance|credits?|quota)|billing|spend(?:ing)?[ _]limit/i;

export function fault(status: number, headers: HeadersIn, body: Buffer): Fault {
  const said = read(body);
  return {
    ...meant(said, BY_STATUS[status] ?? (status >= 500 ? "upstream" : "invalid"), status),
    retryAfterMs: retryAfter(headers),
  };
}

/** An error that stands where an answer should: in a stream, or under a 200. */
export function thrown(body: JsonObject): never {
  const { kind, message, ...more } = meant(errorIn(body), "upstream", 200);
  return fail(kind, message, more);
}

interface Said {
  type?: string | undefined;
  message?: string | undefined;
  code?: string | undefined;
  details?: JsonObject | undefined;
}

function meant(said: Said, byStatus: ErrorKind, status: number): Fault {
  const message = said.message ?? `The provider answered with status ${status} and no words.`;
  const typed = said.type !== undefined && Object.hasOwn(BY_TYPE, said.type);
  // A type contradicts its status only where the status is a mere failure: proxies turn those into one another.
  const words = `${message} ${said.code ?? ""} ${said.type ?? ""}`;
  let kind =
    typed && (byStatus === "invalid" || byStatus === "upstream") ? BY_TYPE[said.type!]! : byStatus;
  if (kind === "invalid" || kind === "too_large") {
    if (CONTEXT.test(words)) kind = "context_length";
    else if (kind === "invalid" && MONEY.test(message)) kind = "upstream_quota";
    else if (kind === "invalid" && POLICY.test(message)) kind = "content_policy";
  }
  if (kind === "rate_limited" && MONEY.test(words)) kind = "upstream_quota";
  return {
    kind,
    message,
    ...(said.code !== undefined && { code: said.code }),
    ...(said.details && { details: said.details }),
  };
}

function read(body: Buffer): Said {
  const text = body.toString();
  try {
    const json: unknown = JSON.parse(text);
    if (isObject(json)) return errorIn(json);
  } catch {
    // Not ours to parse: a proxy's page, or nothing.
  }
  const plain = text.trim();
  return plain === "" || plain.startsWith("<") ? {} : { message: plain.slice(0, 500) };
}

/** Everybody who speaks this wire has an error shape, and not always this wire's. */
function errorIn(body: JsonObject): Said {
  const error = body["error"];
  if (isObject(error)) {
    const details = isObject(error["details"]) ? error["details"] : undefined;
    const code = details?.["error_code"] ?? error["code"];
    return {
      type: str(error["type"]),
      message: wordsOf(error["message"]),
      code: typeof code === "number" ? String(code) : str(code),
      details,
    };
  }
  const base = body["base_resp"];
  if (isObject(base)) return { message: wordsOf(base["status_msg"]) };
  const type = body["type"] === "error" ? undefined : str(body["type"]);
  const message = wordsOf(error) ?? wordsOf(body["message"]) ?? wordsOf(body["detail"]);
  return { type, message, code: str(body["code"]) };
}

const wordsOf = (value: Json | undefined): string | undefined =>
  typeof value === "string"
    ? value
    : Array.isArray(value) || isObject(value)
      ? JSON.stringify(value).slice(0, 500)
      : undefined;
