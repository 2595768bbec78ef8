import { describeUnexpectedError } from "../lib/error-location.ts";
import type { JsonObject, Opt } from "./values.ts";

/**
 * All error kinds: [HTTP status, whether another candidate is tried, scope of the cooldown].
 * Plugins cannot add kinds. Only the kind determines status, retry, and cooldown.
 *
 * - `never`: the request is at fault, and another candidate would fail in the same way.
 * - `next`: another candidate may succeed. It is tried unless the route's `fallback_on` excludes
 *   the kind.
 * - `opt_in`: another candidate with a larger window or another policy may succeed, at another
 *   price. It is tried only if the route's `fallback_on` names the kind and the error came from the
 *   provider, not from a hook.
 */
export const ERRORS = {
  invalid: [400, "never"],
  context_length: [400, "opt_in"],
  content_policy: [400, "opt_in"],
  /** This candidate does not support the request. Another candidate may support it. */
  unsupported: [400, "next"],
  unauthenticated: [401, "never"],
  forbidden: [403, "never"],
  privacy: [403, "never"],
  not_found: [404, "never"],
  conflict: [409, "never"],
  /** The request contradicts an earlier request of the client. */
  mismatch: [422, "never"],
  too_large: [413, "never"],
  /** The client's own budget is used up. */
  quota: [429, "never"],
  rate_limited: [429, "next", "credential+model"],
  overloaded: [503, "next", "target"],
  timeout: [504, "next", "target"],
  upstream: [502, "next", "target"],
  /**
   * Tollgate's key or account at the provider failed. Never reported as the client's 401 or 402.
   */
  upstream_auth: [502, "next", "credential"],
  upstream_quota: [502, "next", "credential"],
  /** The provider reports that it stored content that it must not store. */
  attestation: [502, "never", "credential"],
  unavailable: [503, "never"],
  canceled: [499, "never"],
  /** The client receives a fixed text and an id. The message is only logged. */
  internal: [500, "never"],
} as const satisfies Record<
  string,
  readonly [
    status: number,
    retry: "never" | "next" | "opt_in",
    rests?: "target" | "credential" | "credential+model",
  ]
>;

/** Kind of failure. A plugin chooses the kind, and the host derives its reaction from it. */
export type ErrorKind = keyof typeof ERRORS;

/** An error whose message is shown to the client. Any other error is reported as `internal`. */
export interface Fault {
  /** Kind of failure, which determines the HTTP status and whether another candidate is tried. */
  kind: ErrorKind;
  /** Message for the client. For the kind `internal`, it is only logged. */
  message: string;
  /** Documented error code, or a code that the protocol defines. More codes may be added. */
  code?: Opt<string>;
  /** The invalid field, as a JSON pointer or in the protocol's own notation. */
  param?: Opt<string>;
  /** Time after which the client may retry, in milliseconds. Sent as `retry-after`, in seconds. */
  retryAfterMs?: Opt<number>;
  /** Facts for programs, returned in the error body next to the message. */
  details?: Opt<JsonObject>;
  /** Cause, for the log only. */
  cause?: Opt<unknown>;
}

/**
 * A registered symbol instead of a class, so that faults work across several copies of this module.
 */
const FAULT = Symbol.for("tollgate.fault");

/**
 * Creates the error that `fail` throws, without throwing it. Use it to reject a promise or to pass
 * on a failure. Plugins and the host call it. Has no side effects and never throws.
 */
export const createFault = (
  kind: ErrorKind,
  message: string,
  more: Omit<Fault, "kind" | "message"> = {},
): Error =>
  Object.assign(new Error(message, { cause: more.cause }), {
    [FAULT]: { ...more, kind, message } satisfies Fault,
  });

/**
 * Throws a fault. Code in the request pipeline must use this function to reject a request with a
 * message.
 */
export const fail = (
  kind: ErrorKind,
  message: string,
  more?: Omit<Fault, "kind" | "message">,
): never => {
  throw createFault(kind, message, more);
};

/** Returns the fault that was thrown, or undefined for any other value. */
export const getFault = (error: unknown): Fault | undefined =>
  (error as { [FAULT]?: Fault } | null | undefined)?.[FAULT];

/**
 * Errors that V8 throws for programming errors. Their messages describe code and may quote the
 * request.
 */
const ENGINE_ERRORS = [TypeError, RangeError, SyntaxError, ReferenceError, URIError, EvalError];

/**
 * Returns the text of an error that may be shown to clients and in log messages and status output.
 * It is the message of a fault, or of an error whose message was written for readers. Messages of
 * engine errors are only logged, in `err`, with their location.
 */
export function publicErrorText(
  error: unknown,
  otherwise = describeUnexpectedError(error),
): string {
  const fault = getFault(error);
  if (fault) return fault.message;
  if (!(error instanceof Error) || ENGINE_ERRORS.some((kind) => isInstanceByName(error, kind)))
    return otherwise;
  return error.message;
}

/**
 * The name is also compared, because for an error in another process only its name is transferred.
 */
const isInstanceByName = (error: Error, kind: Function): boolean =>
  error instanceof kind || error.name === kind.name;
