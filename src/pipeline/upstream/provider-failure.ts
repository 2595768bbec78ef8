// Handles a provider's failure: its effect on later requests, the operator's log, and the message
// for the client.
import { type ErrorKind, type Fault, createFault, getFault } from "../../model/error.ts";
import type { JsonObject } from "../../model/values.ts";
import type { BackgroundStatus } from "../../plugin/jobs/background.ts";
import { parseErrorBody } from "../../protocols/failure/parse-error.ts";
import { asObject } from "../../protocols/json-values.ts";
import type { HostCall } from "../exchange/call.ts";
import { isPaidByClient } from "../exchange/client-credential.ts";
import { clientKey, isClientRetry } from "../exchange/client-retries.ts";
import type { Generation } from "../generation.ts";
import {
  isProviderAccountError,
  faultProvider,
  countsAgainstTarget,
  attributeFault,
} from "../faults/fault-source.ts";
import { rateLimitScope } from "../faults/rate-limits.ts";
import type { ModelEvent } from "../../model/event.ts";
import { checkEvent } from "../hooks/hook-results.ts";

const ACCOUNT_MESSAGES = {
  upstream_auth: (provider: string) => `The gateway's credential for ${provider} was rejected.`,
  upstream_quota: (provider: string) =>
    `The gateway's account with ${provider} has no credit or quota left.`,
} as const;

/** Errors of one client's account, which say nothing about calls of other clients. */
const CLIENT_ACCOUNT_ERRORS: ReadonlySet<ErrorKind> = new Set([
  "unauthenticated",
  "forbidden",
  "quota",
  "rate_limited",
  "upstream_auth",
  "upstream_quota",
]);

/**
 * Returns the kind of an error of a call that the client pays. An error of the account concerns the
 * client, which can sign in again, and not the operator.
 */
export function clientFaultKind(kind: ErrorKind, status?: number): ErrorKind {
  if (kind === "upstream_quota") return "quota";
  if (kind !== "upstream_auth") return kind;
  return status === 403 ? "forbidden" : "unauthenticated";
}

/**
 * Converts the error of a response that the client pays, such as an error event in a stream, to an
 * error of the client's account. The error then contains no credential. Changes the fault in place.
 */
export function toClientAccountFault(call: HostCall, problem: unknown): unknown {
  const fault = isPaidByClient(call.candidate) ? getFault(problem) : undefined;
  if (!fault) return problem;
  const own = call.exchange.state.admission.clientCredential;
  const mask = (text: string) => own?.mask(text) ?? text;
  fault.kind = clientFaultKind(fault.kind);
  fault.message = mask(fault.message);
  if (fault.code !== undefined) fault.code = mask(fault.code);
  if (fault.param !== undefined) fault.param = mask(fault.param);
  if (fault.details) fault.details = JSON.parse(mask(JSON.stringify(fault.details))) as JsonObject;
  return problem;
}

/**
 * Records a failure for the target's health and, if it concerns the account, in the operator's log.
 */
export function recordFailure(call: HostCall, fault: Fault): void {
  if (!countsAgainstTarget(fault)) return;
  if (isPaidByClient(call.candidate) && CLIENT_ACCOUNT_ERRORS.has(fault.kind)) return;
  const x = call.exchange;
  const { gen } = x.state;
  gen.targetHealth.recordFailure(call.candidate, fault, {
    reason: call.reason,
    startedAt: call.startedAt,
    client: clientKey(x),
    requestId: x.id,
    isClientRetry: isClientRetry(x),
    isUnsent: call.failurePoint === "unsent",
    limitScope: rateLimitScope(fault),
  });
  if (!isProviderAccountError(fault.kind)) return;
  gen.log.warn(
    {
      request: call.exchange.id,
      provider: call.provider,
      credential: call.credential,
      kind: fault.kind,
      code: fault.code && /^[\w.-]{1,64}$/.test(fault.code) ? gen.mask(fault.code) : undefined,
      provider_message: quotesRequest(call, fault.message) ? undefined : gen.mask(fault.message),
    },
    "provider rejected credential",
  );
}

/**
 * Number of consecutive characters that a message must share with the request to count as quoting
 * it.
 */
const QUOTE_LENGTH = 12;
/**
 * Size in bytes beyond which a body is not searched. The message then counts as quoting the
 * request.
 */
const MAX_SEARCHED_BYTES = 64 * 1024;
const MAX_MESSAGE_LENGTH = 500;

/**
 * Whether the provider's message quotes the request. Content that people wrote must not appear in a
 * log.
 */
function quotesRequest({ exchange: x }: HostCall, message: string): boolean {
  const { received } = x.state.body;
  if (
    x.privacy !== "off" ||
    message.length > MAX_MESSAGE_LENGTH ||
    !received ||
    received.inputBytes > MAX_SEARCHED_BYTES
  )
    return true;
  const sent = JSON.stringify(received.body);
  const escaped = JSON.stringify(message).slice(1, -1);
  for (let i = 0; i + QUOTE_LENGTH <= escaped.length; i++)
    if (sent.includes(escaped.slice(i, i + QUOTE_LENGTH))) return true;
  return escaped.length < QUOTE_LENGTH && sent.includes(escaped);
}

/**
 * Returns the fault for the client: it names the provider that failed and contains the provider's
 * message. It contains no secrets and nothing about the operator's account.
 */
export function toClientFault(gen: Generation, fault: Fault): Fault {
  const provider = faultProvider(fault);
  if (isProviderAccountError(fault.kind))
    return {
      kind: fault.kind,
      code: fault.kind,
      message: ACCOUNT_MESSAGES[fault.kind](provider ?? "the provider"),
    };
  const { code, param, details } = fault;
  return {
    ...fault,
    message: gen.mask(provider === undefined ? fault.message : `${provider}: ${fault.message}`),
    ...(code !== undefined && { code: gen.mask(code) }),
    ...(param !== undefined && { param: gen.mask(param) }),
    ...(details && { details: gen.maskJson(details) as JsonObject }),
  };
}

/** Returns the status of a request in the background with its message for the client. */
export function toClientStatus(gen: Generation, status: BackgroundStatus): BackgroundStatus {
  if (status.message == null) return status;
  const error = { ...asObject(status.response?.["error"]), message: status.message };
  return { ...status, message: toClientFault(gen, parseErrorBody({ error })).message };
}

// Converts errors of a provider's own code: an endpoint that produces its response itself, or a
// signing scheme. Any error other than a fault counts as a failure of the provider, like a broken
// connection. Other candidates may answer, and repeated failures put the target in cooldown.
const YIELD_EVERY_EVENTS = 512;

export function toProviderFault(call: HostCall, problem: unknown): unknown {
  const fault = getFault(problem);
  if (fault) {
    // A plugin does not have to read the header itself. As for any provider, `retryAfterOf` decides
    // for which kinds a client receives the retry time.
    fault.retryAfterMs ??= call.retryAfterMs;
    return problem;
  }
  const { exchange: x, provider } = call;
  x.state.gen.log.error(
    { request: x.id, plugin: `providers.${provider}`, err: problem },
    "provider plugin failed",
  );
  const failed = createFault(
    "upstream",
    "The provider plugin failed. See the gateway log for this request ID.",
    {
      code: "plugin_failed",
      cause: problem,
    },
  );
  return attributeFault(failed, "target", provider);
}

/** Validates the events of an endpoint that produces its response itself. */
export async function* validateEvents(
  call: HostCall,
  events: AsyncIterable<ModelEvent>,
): AsyncGenerator<ModelEvent> {
  let made = 0;
  try {
    for await (const event of events) {
      checkEvent(event);
      yield event;
      // A generator that never awaits would block all other work.
      if (++made % YIELD_EVERY_EVENTS === 0) await new Promise(setImmediate);
    }
  } catch (problem) {
    throw toProviderFault(call, problem);
  }
}
