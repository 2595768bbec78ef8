import { describeUnexpectedError } from "../lib/error-location.ts";
import type { JsonObject, Opt } from "./values.ts";

/**
 * Every way a request can fail: [status, may another candidate be tried, what is rested for a while].
 * The set is closed: a kind decides status, retry and rest, and nothing else does.
 *
 * never: what was asked is at fault, and another candidate would say the same. next: another one may mend it, unless the
 * route's `fallback_on` leaves it out. opt_in: another one may mend it, with a larger window or another policy, at another price: it
 * is tried only where the route's `fallback_on` names the kind and the provider itself said so, not a hook.
 */
export const ERRORS = {
  invalid: [400, "never"],
  context_length: [400, "opt_in"],
  content_policy: [400, "opt_in"],
  /** This candidate cannot say it; another may. */
  unsupported: [400, "next"],
  unauthenticated: [401, "never"],
  forbidden: [403, "never"],
  privacy: [403, "never"],
  not_found: [404, "never"],
  conflict: [409, "never"],
  /** It does not go with what the client said before. */
  mismatch: [422, "never"],
  too_large: [413, "never"],
  /** The client's own budget. */
  quota: [429, "never"],
  rate_limited: [429, "next", "credential+model"],
  overloaded: [503, "next", "target"],
  timeout: [504, "next", "target"],
  upstream: [502, "next", "target"],
  /** Our key, our account: never the client's 401 or 402. */
  upstream_auth: [502, "next", "credential"],
  upstream_quota: [502, "next", "credential"],
  /** Upstream says that it kept what it must not keep. */
  attestation: [502, "never", "credential"],
  unavailable: [503, "never"],
  canceled: [499, "never"],
  /** Fixed text and an id; its message is for the log. */
  internal: [500, "never"],
} as const satisfies Record<
  string,
  readonly [
    status: number,
    retry: "never" | "next" | "opt_in",
    rests?: "target" | "credential" | "credential+model",
  ]
>;

/** The kinds of failure. A plugin chooses one; the host decides from it what happens next. */
export type ErrorKind = keyof typeof ERRORS;

/** The only error with words for a client. Any other throw is `internal`. */
export interface Fault {
  /** Kind of failure, which decides the HTTP status and whether another candidate is tried. */
  kind: ErrorKind;
  /** Message for the client. Of the kind `internal`, for the log only. */
  message: string;
  /** From the open, listed vocabulary of codes; the protocol's own where it has one. */
  code?: Opt<string>;
  /** The field at fault, as a JSON pointer or the protocol's own spelling of a path. */
  param?: Opt<string>;
  /** Time after which the client may retry, in milliseconds. Sent as `retry-after`, in seconds. */
  retryAfterMs?: Opt<number>;
  /** Facts for programs, returned in the error body next to the message. */
  details?: Opt<JsonObject>;
  /** For the log only. */
  cause?: Opt<unknown>;
}

/** A registered symbol, not a class: a second copy of this module changes nothing. */
const FAULT = Symbol.for("tollgate.fault");

/**
 * Makes the error that `fail` throws, and throws nothing: for a promise that is rejected with it, or for a failure that is
 * handed on. Called by plugins and by the host alike; has no effect of its own and never throws.
 */
export const createFault = (
  kind: ErrorKind,
  message: string,
  more: Omit<Fault, "kind" | "message"> = {},
): Error =>
  Object.assign(new Error(message, { cause: more.cause }), {
    [FAULT]: { ...more, kind, message } satisfies Fault,
  });

/** Throws a fault: the one way in which code on the way of a request refuses it with words. */
export const fail = (
  kind: ErrorKind,
  message: string,
  more?: Omit<Fault, "kind" | "message">,
): never => {
  throw createFault(kind, message, more);
};

/** The fault that was thrown, or nothing when something else was. */
export const getFault = (error: unknown): Fault | undefined =>
  (error as { [FAULT]?: Fault } | null | undefined)?.[FAULT];

/** Made by V8 for what a program does wrong: their words are about code, and may quote what was sent. */
const ENGINE_ERRORS = [TypeError, RangeError, SyntaxError, ReferenceError, URIError, EvalError];

/**
 * What may be said of an error where a client, a log's message or a status shows it: a fault's words, or those of an error
 * that was written to be read. The engine's are for the log's `err`, beside the place that they come from.
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

/** By its name as well: of an error of another process only that has come. */
const isInstanceByName = (error: Error, kind: Function): boolean =>
  error instanceof kind || error.name === kind.name;
