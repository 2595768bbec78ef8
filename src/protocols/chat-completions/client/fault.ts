// What an upstream's error means. The shapes differ, the words overlap; the status decides, unless the words know better.
import { fail, type ErrorKind, type Fault } from "../../../model/error.ts";
import type { HeadersIn, Json, JsonObject, Opt } from "../../../plugin/index.ts";
import { retryAfter } from "../../retry.ts";
import { list, number, object, present, text } from "../words.ts";

/** Enough to say what is wrong; more is a page, not a message. */
const LONGEST = 2000;

export function fault(status: number, headers: HeadersIn, body: Buffer): Fault {
  const said = saidIn(body);
  const kind = kindOf(status, said);
  return present({
    kind,
    message: (said.message ?? `The provider answered with status ${status}.`).slice(0, LONGEST),
    code: said.code ?? CODES[kind],
    param: said.param,
    retryAfterMs: status === 429 || status >= 500 ? retryAfter(headers) : undefined,
  });
}

/** An error inside an answer that began as a success. */
export function faultIn(answer: JsonObject): Fault {
  const said = saying(answer);
  const inner = object(answer["error"]);
  const status = number(inner?.["code"]) ?? number(inner?.["status"]) ?? Number(said.code ?? 0);
  const kind = kindOf(status >= 400 && status < 600 ? status : 0, said);
  return present({
    kind,
    message: (said.message ?? "The provider broke off its answer with an error.").slice(0, LONGEST),
    code: said.code ?? CODES[kind] ?? "upstream_error",
    param: said.param,
  });
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
    value = JSON.parse(text);
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

export const throwFault = ({ kind, message, ...more }: Fault): never => fail(kind, message, more);

interface Said {
  message?: string | undefined;
  code?: string | undefined;
  type?: string | undefined;
  param?: string | undefined;
}

function saidIn(body: Buffer): Said {
  let parsed: unknown;
  try {
    parsed = JSON.parse(body.toString("utf8"));
  } catch {
    const plain = body.toString("utf8").trim();
    // A proxy's page says nothing to the one who asked.
    return plain === "" || plain.startsWith("<") ? {} : { message: plain };
  }
  return saying(object(parsed) ?? object(list(parsed)[0]) ?? {});
}

function saying(body: JsonObject): Said {
  const error = object(body["error"]) ?? object(list(body["errors"])[0]) ?? body;
  const base = object(body["base_resp"]);
  return {
    message:
      text(error["message"]) ??
      text(body["error"]) ??
      text(body["message"]) ??
      text(base?.["status_msg"]) ??
      detailOf(body["detail"]),
    code: codeOf(error["code"]) ?? codeOf(body["code"]) ?? codeOf(base?.["status_code"]),
    type: text(error["type"]) ?? text(object(error["metadata"])?.["error_type"]),
    param: text(error["param"]),
  };
}

/** Validators list what they did not like, with the path to it. */
function detailOf(detail: Opt<Json>): string | undefined {
  if (typeof detail === "string") return detail;
  const first = object(list(detail)[0]);
  const message = text(first?.["msg"]);
  if (message === undefined) return undefined;
  const path = list(first?.["loc"])
    .filter((l) => l !== "body")
    .join(".");
  return path === "" ? message : `${path}: ${message}`;
}

/** A status that is said again as a code says nothing. */
const codeOf = (code: Opt<Json>): string | undefined => {
  if (typeof code === "number") return code >= 100 && code < 600 ? undefined : String(code);
  return typeof code === "string" && code !== "" ? code : undefined;
};

const CONTEXT =
  /context[_ ]length|maximum context|context window|prompt is too long|input is too long|exceeds? the (?:maximum|model)[^.]*(?:token|context)|too many (?:input )?tokens|reduce the length|exceed_context_size/i;
const POLICY =
  /content[_ ](?:policy|filter)|content management policy|safety system|moderation|data_inspection|sensitive/i;
const EMPTY =
  /insufficient_quota|insufficient[_ ](?:balance|credit|funds)|exceeded your current quota|billing|credit balance|arrearage|out of credits|payment required/i;

function kindOf(status: number, said: Said): ErrorKind {
  const words = `${said.code ?? ""} ${said.type ?? ""} ${said.message ?? ""}`;
  switch (status) {
    case 401:
      return "upstream_auth";
    case 402:
      return "upstream_quota";
    case 403:
      if (POLICY.test(words)) return "content_policy";
      return EMPTY.test(words) ? "upstream_quota" : "upstream_auth";
    case 404:
      return "not_found";
    case 408:
    case 504:
    case 524:
      return "timeout";
    case 409:
      return "conflict";
    case 413:
      return CONTEXT.test(words) ? "context_length" : "too_large";
    case 429:
      return EMPTY.test(words) ? "upstream_quota" : "rate_limited";
    case 498:
    case 503:
    case 529:
      return "overloaded";
    case 400:
    case 422:
      if (CONTEXT.test(words)) return "context_length";
      if (EMPTY.test(words)) return "upstream_quota";
      return POLICY.test(words) ? "content_policy" : "invalid";
    default:
      return status >= 400 && status < 500 ? "invalid" : byWords(words);
  }
}

/** In the middle of an answer there is no status; and some say 500 for everything. */
function byWords(words: string): ErrorKind {
  if (CONTEXT.test(words)) return "context_length";
  if (EMPTY.test(words)) return "upstream_quota";
  if (/overloaded|over capacity|unavailable|busy/i.test(words)) return "overloaded";
  if (/rate[_ ]?limit|too many requests/i.test(words)) return "rate_limited";
  return /time[d]?[ _-]?out/i.test(words) ? "timeout" : "upstream";
}

const CODES: { readonly [K in ErrorKind]?: string } = {
  context_length: "context_length_exceeded",
  content_policy: "content_policy_violation",
  not_found: "model_not_found",
  upstream_auth: "upstream_auth_error",
  upstream_quota: "upstream_quota",
  rate_limited: "rate_limit_exceeded",
  overloaded: "overloaded",
};
