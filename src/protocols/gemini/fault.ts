import { fail, type ErrorKind, type Fault } from "../../model/error.ts";
import type { HeadersIn, Json, JsonObject } from "../../model/values.ts";
import { retryAfter } from "../retry.ts";
import { BY_STATUS } from "../status.ts";
import { list, object, objects, text } from "./words.ts";

/** By the API's own status name: it says more than the number, which proxies change. */
const BY_NAME: Readonly<Record<string, ErrorKind>> = {
  INVALID_ARGUMENT: "invalid",
  FAILED_PRECONDITION: "invalid",
  OUT_OF_RANGE: "invalid",
  UNAUTHENTICATED: "upstream_auth",
  PERMISSION_DENIED: "upstream_auth",
  NOT_FOUND: "not_found",
  ABORTED: "conflict",
  ALREADY_EXISTS: "conflict",
  RESOURCE_EXHAUSTED: "rate_limited",
  UNAVAILABLE: "overloaded",
  DEADLINE_EXCEEDED: "timeout",
  INTERNAL: "upstream",
  UNKNOWN: "upstream",
  DATA_LOSS: "upstream",
  CANCELLED: "upstream",
  UNIMPLEMENTED: "unsupported",
};

/** A wrong key is a 400 here, and so is a key from the wrong place: neither is the client's doing. */
const KEY = /^API_KEY_|^(?:ACCOUNT|CONSUMER|SERVICE)_/;
const ACCOUNT = /API key (?:not valid|expired)|user location is not supported/i;
const MONEY =
  /billing|prepa(?:y|id)|credits? (?:are )?(?:depleted|exhausted)|spend(?:ing)?[ _](?:cap|limit)/i;
const CONTEXT =
  /exceeds the maximum number of tokens|input token count|input is too long|context (?:window|length)/i;

export function fault(status: number, headers: HeadersIn, body: Buffer): Fault {
  const { retryAfterMs, ...told } = meant(read(body), status);
  return { ...told, retryAfterMs: retryAfterMs ?? retryAfter(headers) };
}

/** An error that stands where an answer should: in a stream, or under a 200. */
export function thrown(body: Json): never {
  const said = errorIn(body) ?? {};
  const status = typeof said["code"] === "number" ? said["code"] : 500;
  const { kind, message, ...more } = meant(said, status);
  return fail(kind, message, more);
}

/** Nothing when the JSON is no error. Streams end in a list of one. */
export function errorIn(json: Json): JsonObject | undefined {
  const body = object(Array.isArray(json) ? json[0] : json);
  const error = body?.["error"];
  if (typeof error === "string") return { message: error };
  return object(error);
}

function meant(said: JsonObject, status: number): Fault {
  const message =
    text(said["message"]) || `The provider answered with status ${status} and no words.`;
  const details = objects(said["details"]);
  const byStatus = BY_STATUS[status] ?? (status >= 500 ? "upstream" : "invalid");
  let kind = BY_NAME[text(said["status"]) ?? ""] ?? byStatus;
  const reasons = details.map((d) => text(d["reason"]) ?? "");
  if (reasons.some((r) => KEY.test(r)) || ACCOUNT.test(message)) kind = "upstream_auth";
  else if (kind === "invalid" && CONTEXT.test(message)) kind = "context_length";
  else if (kind === "invalid" && MONEY.test(message)) kind = "upstream_quota";
  // Tomorrow is no time to wait for: another credential may have some of today left.
  else if (kind === "rate_limited" && (MONEY.test(message) || details.some(isDaily)))
    kind = "upstream_quota";
  const wait = details.map((d) => seconds(d["retryDelay"])).find((ms) => ms !== undefined);
  const [field] = objects(details.flatMap((d) => list(d["fieldViolations"])));
  const param = text(field?.["field"]);
  return {
    kind,
    message,
    ...(param && { param }),
    ...(wait !== undefined && { retryAfterMs: wait }),
  };
}

const isDaily = (detail: JsonObject): boolean =>
  list(detail["violations"]).some((v) => /PerDay/i.test(text(object(v)?.["quotaId"]) ?? ""));

/** "34s", "0.5s" */
function seconds(delay: unknown): number | undefined {
  const n = Number(/^(\d+(?:\.\d+)?)s$/.exec(text(delay) ?? "")?.[1] ?? Number.NaN);
  return n >= 0 ? Math.min(Math.round(n * 1000), 24 * 3600_000) : undefined;
}

function read(body: Buffer): JsonObject {
  const said = body.toString();
  try {
    const json = JSON.parse(said) as Json;
    const error = errorIn(json);
    if (error) return error;
    const message = text(object(json)?.["message"]) ?? text(object(json)?.["detail"]);
    return message === undefined ? {} : { message };
  } catch {
    // A proxy's page has nothing to tell a client; plain words have.
    const plain = said.trim();
    return plain === "" || plain.startsWith("<") ? {} : { message: plain.slice(0, 500) };
  }
}
