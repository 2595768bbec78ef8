import { telling } from "../accounts.ts";
import { isSmallBody } from "../../lib/small-body.ts";
import { wallClock } from "../../lib/wall-clock.ts";
import { retryAfterOf, retryHeaders, withRetry } from "../../model/client-retry.ts";
import { ERRORS, faultOf, type Fault } from "../../model/error.ts";
import type { Json, JsonObject } from "../../model/values.ts";
import type { ErrorAnswer } from "../../plugin/protocol.ts";
import { isHopeless, providerOf } from "../upstream/blame.ts";
import { shown } from "../upstream/heed.ts";
import { answering } from "../upstream/encode.ts";
import type { HostExchange } from "../exchange.ts";
import { refusalOf } from "../upstream/send.ts";
import type { Generation } from "../generation.ts";
import { receipts } from "../candidates/privacy.ts";
import { answerHeaders } from "../answer/answer-headers.ts";

/** Whether a provider's error is the client's to read as it is. Its other 4xx are about the operator's account, or about the gateway's own request. */
const isPassed = (status: number): boolean =>
  isFailure(status) || [400, 404, 413, 422, 429].includes(status);

const isFailure = (status: number): boolean => status >= 500 && status < 600;

/** Every error leaves here, in the client's protocol. Nothing that a plugin threw sets a status or a header by itself. */
export function refuse(x: HostExchange, problem: unknown): void {
  const inner = x["~"];
  const fault = faultOf(problem) ?? unexpected(x, problem);
  inner.fault = fault;
  const { res, req } = inner;
  if (inner.gone || res.headersSent) return void res.destroy();
  const told = passed(x, problem, fault) ?? rendered(x, problem, fault);
  const body = Buffer.from(told.body);
  const headers: Record<string, string> = {
    "content-type": "application/json",
    "content-length": String(body.length),
    "x-tollgate-generation": String(inner.gen.number),
    ...receipts(x),
  };
  const head = inner.frontend.server?.head?.({
    id: x.id,
    limits: telling(inner.limits, inner.branch),
    now: wallClock(),
  }) ?? {
    "x-request-id": x.id,
  };
  for (const [name, value] of Object.entries(head)) if (value !== undefined) headers[name] = value;
  const provider = providerOf(fault);
  if (provider !== undefined && inner.sent) headers["x-tollgate-provider"] = provider;
  Object.assign(headers, told.headersOfRetry);
  for (const [name, value] of told.headers) headers[name] ??= value;
  if (inner.headers) for (const [name, value] of inner.headers) headers[name] = value;
  for (const [name, value] of answerHeaders(inner, true)) headers[name] ??= value;
  const isUntouched = req.readableFlowing === null;
  if (!req.complete && !(isUntouched && isSmallBody(req.headers))) headers["connection"] = "close";
  res.writeHead(told.status, headers);
  inner.bytesOut += body.length;
  res.end(body);
}

interface WrittenError {
  status: number;
  body: string;
  headers: [string, string][];
  headersOfRetry: Record<string, string>;
}

function rendered(x: HostExchange, problem: unknown, fault: Fault): WrittenError {
  const inner = x["~"];
  const isOpen = isOpenEnded(problem, fault);
  const told = isOpen ? shown(inner.gen, fault) : withRetry(shown(inner.gen, fault));
  const status = failedWith(problem, fault);
  let refusal: ErrorAnswer | undefined;
  try {
    const to = { id: x.id, ...(status !== undefined && { status }) };
    refusal =
      inner.frontend.frontend.fault?.(told, x, to) ?? inner.frontend.server?.fault(told, to);
  } catch (error) {
    inner.gen.log.error(
      { request: x.id, err: error },
      `${inner.frontend.name} could not write an error`,
    );
  }
  return {
    status: status ?? refusal?.status ?? ERRORS[fault.kind][0],
    body: JSON.stringify(refusal?.body ?? plain(told, x.id)),
    headers: [],
    headersOfRetry: headersOfRetry(problem, fault),
  };
}

/** The status of a provider's error that is the client's to read. Every protocol can express it. */
function failedWith(problem: unknown, fault: Fault): number | undefined {
  const status = refusalOf(problem)?.status;
  return status !== undefined && isPassed(status) && !isHopeless(fault) ? status : undefined;
}

/** Whether a provider failed and did not say when to retry. The gateway then does not either. */
const isOpenEnded = (problem: unknown, fault: Fault): boolean =>
  refusalOf(problem) !== undefined &&
  typeof fault.retryAfterMs !== "number" &&
  retryAfterOf(fault) !== undefined;

const headersOfRetry = (problem: unknown, fault: Fault): Record<string, string> =>
  isOpenEnded(problem, fault) ? { "x-should-retry": "true" } : retryHeaders(retryAfterOf(fault));

/** The shape of errors where no protocol has one. */
export const plain = (fault: Fault, id: string): JsonObject => ({
  error: {
    message: fault.message,
    type: fault.kind,
    code: fault.code ?? fault.kind,
    param: fault.param ?? null,
    request_id: id,
  },
});

/** An upstream's refusal on the verbatim lane: its status and its bytes, our secrets out of them. */
function passed(x: HostExchange, problem: unknown, fault: Fault): WrittenError | undefined {
  const inner = x["~"];
  const refusal = refusalOf(problem);
  if (!refusal || !isPassed(refusal.status) || inner.calls.at(-1)?.candidate.lane !== "verbatim")
    return undefined;
  if (isHopeless(fault)) return undefined;
  if (!String(refusal.headers["content-type"]).includes("json")) return undefined;
  const headers: [string, string][] = [];
  answering(inner.frontend.protocol?.headers?.response, refusal.headers, (name, value) =>
    headers.push([name, inner.gen.mask(value)]),
  );
  const body = withoutSecrets(inner.gen, refusal.body.toString(), isFailure(refusal.status));
  return body === undefined
    ? undefined
    : { status: refusal.status, body, headers, headersOfRetry: headersOfRetry(problem, fault) };
}

/** An error body without secrets. Undefined if it is not JSON, is nested too deeply to be read, or is the body of a failure and contains no error. */
function withoutSecrets(gen: Generation, text: string, isFailed: boolean): string | undefined {
  try {
    const said = JSON.parse(text) as Json;
    if (isFailed && !saysWhy(said)) return undefined;
    const safe = JSON.stringify(gen.masked(said));
    return safe === JSON.stringify(said) ? text : safe;
  } catch {
    return undefined;
  }
}

/** Whether a client can find an error in a body. Vendors write `error`, `message`, or `detail`. A page of HTML in one of them is none. */
function saysWhy(body: Json): boolean {
  const has = (name: string) => {
    const value = isJsonObject(body) ? body[name] : undefined;
    return isJsonObject(value) || (typeof value === "string" && /^\s*[^<\s]/.test(value));
  };
  return ["error", "message", "detail", "details"].some(has);
}

const isJsonObject = (value: unknown): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value);

function unexpected(x: HostExchange, problem: unknown): Fault {
  x["~"].gen.log.error({ request: x.id, err: problem }, "an unexpected error");
  return { kind: "internal", message: `Something went wrong here. The log has it under ${x.id}.` };
}
