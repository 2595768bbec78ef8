// An upstream's failure as a fault, whatever shape it came in. Every server of a wire has an error shape, and not
// always that wire's, so that all protocols read all of them here.
import { fail, type Fault } from "../../model/error.ts";
import type { HeadersIn, Json, JsonObject } from "../../model/values.ts";
import { list, object, objects } from "../json.ts";
import { mended } from "../cut.ts";
import { meaning } from "./meaning.ts";
import { retryAfter, retryInWords } from "./retry.ts";

/** Enough to say what is wrong; more is a page, not a message. */
const LONGEST = 2000;
const DAY_MS = 24 * 3600_000;

const text = (v: unknown): string | undefined =>
  typeof v === "string" && v !== "" ? v : undefined;

interface ErrorWords {
  message?: string | undefined;
  code?: string | undefined;
  /** A status said again in the body: all that there is in the middle of an answer. */
  status?: number | undefined;
  /** Codes, types and reasons, the more particular first. */
  names: readonly string[];
  param?: string | undefined;
  details?: JsonObject | undefined;
  waitMs?: number | undefined;
}

/** An answer that is not a success. */
export function failure(status: number, headers: HeadersIn, body: Buffer): Fault {
  const said = read(body, status);
  const fault = worded(said, status, `The provider answered with status ${status} and no words.`);
  const again = status === 429 || status === 408 || status === 498 || status >= 500;
  // The client reads the sentence too: of two times it is told the longer one.
  const waits = [said.waitMs, ...(again ? [retryAfter(headers), retryInWords(fault.message)] : [])];
  const told = waits.filter((ms) => ms !== undefined);
  return told.length === 0 ? fault : { ...fault, retryAfterMs: Math.max(...told) };
}

/** An error that stands where an answer should: in a stream, or under a 200. */
export function failureIn(body: Json | undefined): Fault {
  const said = saying(object(body) ?? object(list(body)[0]) ?? {}, 200);
  const fault = worded(said, said.status ?? 0, "The provider broke off its answer with an error.");
  return said.status === undefined ? fault : { code: String(said.status), ...fault };
}

export function throwFailure(body: Json | undefined): never {
  const { kind, message, ...more } = failureIn(body);
  return fail(kind, message, more);
}

function worded(said: ErrorWords, status: number, otherwise: string): Fault {
  const message = (said.message ?? otherwise).slice(0, LONGEST);
  return {
    kind: meaning(status, said.names, `${message} ${said.names.join(" ")}`),
    message,
    ...(said.code !== undefined && { code: said.code }),
    ...(said.param !== undefined && { param: said.param }),
    ...(said.details && { details: said.details }),
  };
}

function read(body: Buffer, status: number): ErrorWords {
  const said = body.toString();
  let parsed: unknown;
  try {
    parsed = JSON.parse(said);
  } catch {
    // What is too long was cut on its way here; the rest is a proxy's page, or plain words.
    if (/^\s*[[{]/.test(said)) parsed = mended(said);
  }
  const json = object(parsed) ?? object(list(parsed)[0]);
  if (json) return saying(json, status);
  const plain = said.trim();
  // A proxy's page says nothing to the client.
  const words = plain === "" || /^[<{]/.test(plain) ? undefined : plain.slice(0, LONGEST);
  return { names: [], message: words };
}

function saying(body: JsonObject, status: number): ErrorWords {
  const error = object(body["error"]) ?? object(list(body["errors"])[0]) ?? body;
  const base = object(body["base_resp"]);
  const own = object(error["details"]);
  const details = objects(error["details"]);
  const metadata = object(error["metadata"]);
  const code = error["code"] ?? body["code"] ?? base?.["status_code"];
  const type = text(error["type"]);
  return {
    message:
      wordsOf(error["message"]) ??
      text(body["error"]) ??
      wordsOf(body["message"]) ??
      text(base?.["status_msg"]) ??
      detailOf(body["detail"]),
    code: codeOf(own?.["error_code"]) ?? codeOf(code),
    status: statusOf(error["code"]) ?? statusOf(error["status"]),
    names: [
      text(own?.["error_code"]),
      codeOf(code),
      // Under a status of its own that number is only its words.
      status < 400 && base ? `minimax_${String(base["status_code"])}` : undefined,
      ...details.map((one) => text(one["reason"])),
      ...(details.some(isDaily) ? ["insufficient_quota"] : []),
      ...(list(metadata?.["reasons"]).length > 0 ? ["content_policy_violation"] : []),
      text(metadata?.["error_type"]),
      text(error["error_type"]),
      type === "error" ? undefined : type,
      text(error["status"]),
    ].filter((name) => name !== undefined),
    param: text(error["param"]) ?? violated(details),
    details: own,
    waitMs: details.map((one) => seconds(one["retryDelay"])).find((ms) => ms !== undefined),
  };
}

/** A status that is said again as a code says nothing. */
const codeOf = (code: unknown): string | undefined =>
  typeof code === "number" ? (code >= 100 && code < 600 ? undefined : String(code)) : text(code);

const statusOf = (code: unknown): number | undefined => {
  const n = typeof code === "string" && /^\d{3}$/.test(code) ? Number(code) : code;
  return typeof n === "number" && n >= 400 && n < 600 ? n : undefined;
};

const wordsOf = (value: Json | undefined): string | undefined =>
  typeof value === "object" && value !== null
    ? JSON.stringify(value).slice(0, LONGEST)
    : text(value);

/** Validators list what they did not like, with the path to it. */
function detailOf(detail: Json | undefined): string | undefined {
  const [first] = objects(detail);
  const message = text(first?.["msg"]);
  if (message === undefined) return wordsOf(detail);
  const path = list(first?.["loc"])
    .filter((part) => part !== "body")
    .join(".");
  return path === "" ? message : `${path}: ${message}`;
}

/** Tomorrow is no time to wait for: another credential may have some of today left. */
const isDaily = (detail: JsonObject): boolean =>
  objects(detail["violations"]).some((one) => /PerDay/i.test(text(one["quotaId"]) ?? ""));

const violated = (details: readonly JsonObject[]): string | undefined =>
  text(details.flatMap((one) => objects(one["fieldViolations"]))[0]?.["field"]);

/** "34s", "0.5s" */
function seconds(delay: unknown): number | undefined {
  const n = Number(/^(\d+(?:\.\d+)?)s$/.exec(text(delay) ?? "")?.[1] ?? Number.NaN);
  return n >= 0 ? Math.min(Math.round(n * 1000), DAY_MS) : undefined;
}
