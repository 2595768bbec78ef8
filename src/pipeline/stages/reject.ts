import { visibleLimits } from "../accounts/accounts.ts";
import { isSmallBody } from "../../lib/small-body.ts";
import { wallClock } from "../../lib/time/wall-clock.ts";
import { retryAfterMsFor, retryHeaders, withRetryHint } from "../../model/client-retry.ts";
import { ERRORS, getFault, type Fault } from "../../model/error.ts";
import type { Json, JsonObject } from "../../model/values.ts";
import type { ErrorResponse } from "../../plugin/protocol.ts";
import { isRetryPointless, faultProvider } from "../faults/fault-source.ts";
import { toClientFault } from "../upstream/provider-failure.ts";
import { forwardResponseHeaders } from "../upstream/encode-request.ts";
import type { HostExchange } from "../exchange/exchange.ts";
import { errorResponseOf, type UpstreamErrorResponse } from "../upstream/send-request.ts";
import type { Generation } from "../generation.ts";
import { createZdrHeaders } from "../privacy/zero-retention.ts";
import { createDiagnosticHeaders } from "../response/diagnostic-headers.ts";

/**
 * Whether a provider's error status is forwarded to the client. Other 4xx statuses concern the
 * operator's account or the gateway's own request.
 */
const isForwardedStatus = ({ status, isPaidByClient }: UpstreamErrorResponse): boolean =>
  isServerErrorStatus(status) ||
  [400, 404, 413, 422, 429].includes(status) ||
  (isPaidByClient && ACCOUNT_STATUSES.includes(status));

/** Statuses that concern the account with the provider: the client's own, if it pays the call. */
const ACCOUNT_STATUSES = [401, 402, 403];

const isServerErrorStatus = (status: number): boolean => status >= 500 && status < 600;

/**
 * Sends an error in the client's protocol. Every error response is sent here. An error that a
 * plugin threw cannot set a status or a header by itself.
 */
export function reject(x: HostExchange, problem: unknown): void {
  const { gen, frontend, connection, admission, calls, billing, outcome } = x.state;
  const fault = getFault(problem) ?? toInternalFault(x, problem);
  outcome.fault = fault;
  const { res, req } = connection;
  if (connection.isDisconnected || res.headersSent) return void res.destroy();
  const rendered = forwardUpstreamError(x, problem, fault) ?? renderError(x, problem, fault);
  const body = Buffer.from(rendered.body);
  const headers: Record<string, string> = {
    "content-type": "application/json",
    "content-length": String(body.length),
    "x-tollgate-generation": String(gen.number),
    ...createZdrHeaders(x),
  };
  const head = frontend.server?.encodeHeaders?.({
    id: x.id,
    limits: visibleLimits(billing.limitStates, admission.account),
    now: wallClock(),
  }) ?? {
    "x-request-id": x.id,
  };
  for (const [name, value] of Object.entries(head)) if (value !== undefined) headers[name] = value;
  const provider = faultProvider(fault);
  if (provider !== undefined && calls.sent) headers["x-tollgate-provider"] = provider;
  Object.assign(headers, rendered.retryHeaders);
  for (const [name, value] of rendered.headers) headers[name] ??= value;
  if (outcome.headers) for (const [name, value] of outcome.headers) headers[name] = value;
  for (const [name, value] of createDiagnosticHeaders(x.state, true)) headers[name] ??= value;
  const isUntouched = req.readableFlowing === null;
  if (!req.complete && !(isUntouched && isSmallBody(req.headers))) headers["connection"] = "close";
  res.writeHead(rendered.status, headers);
  connection.bytesOut += body.length;
  res.end(body);
}

interface RenderedError {
  status: number;
  body: string;
  headers: [string, string][];
  retryHeaders: Record<string, string>;
}

function renderError(x: HostExchange, problem: unknown, fault: Fault): RenderedError {
  const { gen, frontend } = x.state;
  const isOpen = hasNoRetryTime(problem, fault);
  const clientFault = isOpen ? toClientFault(gen, fault) : withRetryHint(toClientFault(gen, fault));
  const status = forwardedStatusOf(problem, fault);
  let errorResponse: ErrorResponse | undefined;
  try {
    const to = { id: x.id, ...(status !== undefined && { status }) };
    errorResponse =
      frontend.plugin.encodeFault?.(clientFault, x, to) ??
      frontend.server?.encodeFault(clientFault, to);
  } catch (error) {
    gen.log.error({ request: x.id, err: error }, `${frontend.name} could not encode an error`);
  }
  return {
    status: status ?? errorResponse?.status ?? ERRORS[fault.kind][0],
    body: JSON.stringify(errorResponse?.body ?? createPlainError(clientFault, x.id)),
    headers: Object.entries(errorResponse?.headers ?? {}).filter(
      (header): header is [string, string] => typeof header[1] === "string",
    ),
    retryHeaders: createRetryHeaders(problem, fault),
  };
}

/**
 * Returns the status of a provider's error if it is forwarded to the client. Every protocol can
 * express it.
 */
function forwardedStatusOf(problem: unknown, fault: Fault): number | undefined {
  const upstreamError = errorResponseOf(problem);
  return upstreamError && isForwardedStatus(upstreamError) && !isRetryPointless(fault)
    ? upstreamError.status
    : undefined;
}

/**
 * Whether a provider failed and sent no retry time. The gateway then sends no retry time either.
 */
const hasNoRetryTime = (problem: unknown, fault: Fault): boolean =>
  errorResponseOf(problem) !== undefined &&
  typeof fault.retryAfterMs !== "number" &&
  retryAfterMsFor(fault) !== undefined;

const createRetryHeaders = (problem: unknown, fault: Fault): Record<string, string> =>
  hasNoRetryTime(problem, fault)
    ? { "x-should-retry": "true" }
    : retryHeaders(retryAfterMsFor(fault));

/** Creates an error body for routes without a protocol. */
export const createPlainError = (fault: Fault, id: string): JsonObject => ({
  error: {
    message: fault.message,
    type: fault.kind,
    code: fault.code ?? fault.kind,
    param: fault.param ?? null,
    request_id: id,
  },
});

/**
 * Forwards a provider's rejection in passthrough mode: its status and its body, with secrets
 * masked.
 */
function forwardUpstreamError(
  x: HostExchange,
  problem: unknown,
  fault: Fault,
): RenderedError | undefined {
  const { gen, frontend, billing } = x.state;
  const upstreamError = errorResponseOf(problem);
  if (
    !upstreamError ||
    !isForwardedStatus(upstreamError) ||
    billing.records.at(-1)?.candidate.mode !== "passthrough"
  )
    return undefined;
  if (isRetryPointless(fault)) return undefined;
  if (!String(upstreamError.headers["content-type"]).includes("json")) return undefined;
  const headers: [string, string][] = [];
  forwardResponseHeaders(
    frontend.protocol?.headers?.response,
    upstreamError.headers,
    (name, value) => headers.push([name, gen.mask(value)]),
    upstreamError.isPaidByClient,
  );
  const body = maskErrorBody(
    gen,
    upstreamError.body.toString(),
    isServerErrorStatus(upstreamError.status),
  );
  return body === undefined
    ? undefined
    : {
        status: upstreamError.status,
        body,
        headers,
        retryHeaders: createRetryHeaders(problem, fault),
      };
}

/**
 * Returns an error body with secrets masked. Returns undefined if the body is not JSON, is nested
 * too deeply, or belongs to a server error and contains no error.
 */
function maskErrorBody(gen: Generation, text: string, isFailed: boolean): string | undefined {
  try {
    const body = JSON.parse(text) as Json;
    if (isFailed && !containsError(body)) return undefined;
    const safe = JSON.stringify(gen.maskJson(body));
    return safe === JSON.stringify(body) ? text : safe;
  } catch {
    return undefined;
  }
}

/**
 * Whether a client can find an error in a body. Vendors use `error`, `message`, or `detail`. An
 * HTML page in one of these fields does not count.
 */
function containsError(body: Json): boolean {
  const has = (name: string) => {
    const value = isJsonObject(body) ? body[name] : undefined;
    return isJsonObject(value) || (typeof value === "string" && /^\s*[^<\s]/.test(value));
  };
  return ["error", "message", "detail", "details"].some(has);
}

const isJsonObject = (value: unknown): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value);

function toInternalFault(x: HostExchange, problem: unknown): Fault {
  x.state.gen.log.error({ request: x.id, err: problem }, "unexpected error");
  return { kind: "internal", message: `Internal error. See the gateway log for request ${x.id}.` };
}
