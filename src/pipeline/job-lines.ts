// Runs the lines of jobs as requests. A line is planned when its job is created, and settled when its
// result has been read. In between, a provider runs it in a batch. A direct line is sent by the
// gateway instead.
import type { Socket } from "node:net";
import { settlesWithin } from "../lib/time/settles-within.ts";
import { wallClock } from "../lib/time/wall-clock.ts";
import { nextRequestId } from "../lib/request-id.ts";
import type { Price } from "../model/facts.ts";
import { createFault, fail, getFault, type ErrorKind } from "../model/error.ts";
import type { BatchResult, EndpointBatches } from "../plugin/batch.ts";
import type { EndpointBackground } from "../plugin/jobs/background.ts";
import type { JobTarget } from "../plugin/jobs/job-calls.ts";
import type {
  BatchTarget,
  JobLine,
  JobReservation,
  LineBilling,
  LineResponse,
  LineRun,
  LineRunResponse,
  LineSettlement,
  PlannedLine,
  PlanOptions,
} from "../plugin/store/job-lines.ts";
import type { HeadersIn, HeadersOut, Opt } from "../model/values.ts";
import { priceHash } from "../money/price.ts";
import type { Reserve } from "../plugin/store/store.ts";
import { assertFrontendAllowed } from "./accounts/accounts.ts";
import { isProviderFault } from "./faults/fault-source.ts";
import { HostCall } from "./exchange/call.ts";
import { isPaidByClient } from "./exchange/client-credential.ts";
import { HostExchange, type ExchangeJobLine } from "./exchange/exchange.ts";
import type { HostCandidate, MountedEndpoint, MountedProvider } from "./exchange/mounted.ts";
import { createVirtualRequest } from "./exchange/virtual-connection.ts";
import type { Generation, Stamped } from "./generation.ts";
import { createDenial } from "./metering/charges.ts";
import { inspect, rewrite } from "./pipeline.ts";
import {
  backgroundOf,
  createPlannedCall,
  planJobLine,
  reservationOf,
  targetOf,
} from "./plan-job.ts";
import { assertPrivacySupported } from "./privacy/zero-retention.ts";
import { ClientResponse } from "./response/client-response.ts";
import { AttemptExecution } from "./stages/attempt-execution.ts";
import { dispatch } from "./stages/dispatch.ts";
import { edit } from "./stages/edit.ts";
import { present } from "./stages/present.ts";
import { receive } from "./stages/receive.ts";
import { reject } from "./stages/reject.ts";
import { route, type RoutePlan } from "./stages/route.ts";
import { rejectSafely, settle } from "./stages/settle.ts";
import { createBufferedResponse, type BufferedResponse } from "./subrequest.ts";
import { encodeRequest } from "./upstream/encode-request.ts";
import { checkBeforeEncoding } from "./upstream/outgoing-checks.ts";
import { toClientFault } from "./upstream/provider-failure.ts";

/** Name of the service tier at which providers bill batches. */
const BATCH_TIER = "batch";
const NO_SOCKET = {} as Socket;

/** Errors of the gateway after which a result can be processed again. */
const TEMPORARY_KINDS: ReadonlySet<ErrorKind> = new Set([
  "overloaded",
  "unavailable",
  "timeout",
  "rate_limited",
  "canceled",
]);

/** Errors after which a line that the gateway sends itself can be sent again. */
const REPEATABLE_KINDS: ReadonlySet<ErrorKind> = new Set([
  "overloaded",
  "unavailable",
  "rate_limited",
]);

/** Errors that can be an effect of the end of a gateway, such as a hook whose own call was ended. */
const STOP_KINDS: ReadonlySet<ErrorKind> = new Set(["internal", "canceled", "timeout", "upstream"]);

/** Maximum time in milliseconds to wait until the bill of a line is durable. No client waits for it. */
const ROW_TIMEOUT_MS = 30_000;

interface LineExchange extends BufferedResponse {
  readonly x: HostExchange;
}

function createLineExchange(
  gen: Generation,
  { path, body }: JobLine,
  of: {
    readonly id: string;
    readonly socket: Socket;
    readonly headers?: HeadersIn;
    readonly jobLine: ExchangeJobLine;
  },
): LineExchange {
  const found = gen.findRoute(path) ?? fail("not_found", `No frontend serves ${path}.`);
  const { response, body: responseBody } = createBufferedResponse();
  const x = new HostExchange({
    id: of.id,
    gen,
    route: found,
    req: createVirtualRequest({ path, headers: of.headers ?? {}, body, socket: of.socket }),
    res: response.asServerResponse,
    params: {},
    receive,
    jobLine: of.jobLine,
  });
  return { x, response, body: responseBody };
}

/** Headers of the request that creates a job, and that do not describe its lines. */
const JOB_HEADERS = /^(?:content-|transfer-encoding$|expect$|idempotency-key$|x-request-id$)/;

const withoutBodyHeaders = (headers: HeadersIn): HeadersIn =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => !JOB_HEADERS.test(name)));

/** Runs the stages that determine the content of a request. */
async function receiveLine(x: HostExchange): Promise<void> {
  await x.readBody();
  await edit(x);
  await rewrite(x);
}

/** Checks a line and chooses its provider. */
export async function planLine(
  line: JobLine,
  { parentRequest, preferred, allowsDirect }: PlanOptions,
): Promise<PlannedLine> {
  const parent = requireHostExchange(parentRequest);
  const { gen, connection } = parent.state;
  const jobLine: { terms: ExchangeJobLine["terms"] } = { terms: { tier: BATCH_TIER } };
  const { x } = createLineExchange(gen, line, {
    id: nextRequestId(),
    socket: connection.req.socket,
    headers: withoutBodyHeaders(parent.headers),
    jobLine,
  });
  try {
    x.identify(parent.identity!);
    if (parent.privacy !== "off") x.requirePrivacy(parent.privacy);
    assertFrontendAllowed(x.identity!, x.frontend);
    assertPrivacySupported(x);
    await receiveLine(x);
    if (x.stream) fail("invalid", "A line of a batch cannot be streamed.", { param: "stream" });
    await inspect(x);
    const { frontend, body, routing } = x.state;
    const { facts, pinnedTarget, answer, background } = body.received!;
    if (answer || background) fail("unsupported", "This request cannot run in a batch.");
    const { operationSpec } = x;
    const { rewritten: rewrittenRequest } = body;
    const inputs = {
      gen,
      frontend,
      x,
      operationSpec,
      facts,
      pinnedTarget,
      rewrittenRequest,
      routing,
      admission: x.state.admission,
    };
    const plan = await route(inputs);
    const isPreferred = (one: HostCandidate) => preferred.some((target) => isTarget(target, one));
    // A client's credential is not stored, so it cannot be sent later.
    const able = allowsDirect ? plan.candidates.filter((one) => !isPaidByClient(one)) : [];
    const direct = able.find(isPreferred) ?? able[0];
    let unsupported: Error | undefined;
    for (const one of listBatchEndpoints(plan, isPreferred))
      try {
        // A direct line loses nothing, so it is better than an endpoint that drops a field.
        const allowsLosses = !direct || plan.candidates.includes(one);
        return planJobLine(x, one, { allowsLosses });
      } catch (problem) {
        if (getFault(problem)?.kind !== "unsupported") throw problem;
        unsupported ??= problem as Error;
      }
    if (!direct) throw unsupported ?? createBatchesFault(x.model);
    jobLine.terms = undefined;
    return planDirectCall(x, direct);
  } finally {
    x.state.connection.res.destroy();
    x.state.admission.permit.onPipelineEnd();
  }
}

/**
 * Returns the endpoints that run batches, in the order in which they are tried. A candidate's endpoint
 * for the client's protocol may run no batches, or not support the request, and another one may.
 */
function listBatchEndpoints(
  { candidates, otherEndpoints }: RoutePlan,
  isPreferred: (one: HostCandidate) => boolean,
): readonly HostCandidate[] {
  const able = candidates
    .flatMap((one) => [
      one,
      ...otherEndpoints.filter(
        ({ id, credential }) => id === one.id && credential === one.credential,
      ),
    ])
    .filter(({ mounted, model }) => batchesFor(mounted.endpoint, model));
  const first = able.filter(isPreferred);
  return first.length === 0 ? able : [...first, ...able.filter((one) => !first.includes(one))];
}

const createBatchesFault = (model: string): Error =>
  createFault("unsupported", `No provider of ${model} runs batches.`, {
    code: "batches_not_supported",
    param: "model",
  });

/** Calculates the reservation of a line that the gateway sends itself. It is encoded when it is sent. */
function planDirectCall(x: HostExchange, candidate: HostCandidate): PlannedLine {
  const call = createPlannedCall(x, candidate);
  const { endpoint } = candidate.mounted;
  const out = endpoint.transport
    ? encodeRequest(call, endpoint.protocol!, endpoint.transport.definition)
    : null;
  if (!out) checkBeforeEncoding(call);
  return {
    ...reservationOf(x, call, out),
    target: {
      ...targetOf(candidate),
      path: "",
      headers: withoutBodyHeaders(x.headers) as HeadersOut,
      isDirect: true,
    },
    body: "",
  };
}

export const requireHostExchange = (parent: unknown): HostExchange =>
  parent instanceof HostExchange ? parent : fail("internal", "parentRequest must be a request.");

/** Returns the batches of an endpoint, if they serve the model. */
function batchesFor({ definition }: MountedEndpoint, model: string): EndpointBatches | undefined {
  const batches = "protocol" in definition ? definition.batches : undefined;
  const canRun = definition.streaming !== "always" && (batches?.servesModel?.(model) ?? true);
  return canRun ? batches : undefined;
}

/** Whether a candidate has the provider, model, and credential of a job. */
export const isJobTarget = (target: JobTarget, one: HostCandidate): boolean =>
  target.provider === one.provider &&
  target.model === one.model &&
  target.credential === one.credential;

const isTarget = (target: BatchTarget, one: HostCandidate): boolean =>
  isJobTarget(target, one) && target.protocol === (one.protocol ?? "") && target.mode === one.mode;

interface BatchEndpoint {
  readonly provider: MountedProvider;
  readonly endpoint: MountedEndpoint;
  readonly batches: EndpointBatches;
}

/** Returns the provider of a target, and its endpoint that runs batches. */
export function findBatchEndpoint(
  gen: Generation,
  { provider: name, model, protocol }: BatchTarget,
): BatchEndpoint | undefined {
  const provider = gen.providers.get(name);
  for (const endpoint of provider?.endpoints ?? []) {
    const batches = endpoint.protocol?.id === protocol && batchesFor(endpoint, model);
    if (batches) return { provider: provider!, endpoint, batches };
  }
  return undefined;
}

interface BackgroundEndpoint {
  readonly provider: MountedProvider;
  readonly endpoint: MountedEndpoint;
  readonly background: EndpointBackground;
}

/** Returns the provider of a target, and its endpoint that has a background mode. */
export function findBackgroundEndpoint(
  gen: Generation,
  { provider: name, model, protocol }: BatchTarget,
): BackgroundEndpoint | undefined {
  const provider = gen.providers.get(name);
  for (const endpoint of provider?.endpoints ?? []) {
    const background = endpoint.protocol?.id === protocol && backgroundOf(endpoint);
    if (background && (endpoint.definition.servesModel?.(model) ?? true))
      return { provider: provider!, endpoint, background };
  }
  return undefined;
}

/** Reserves the sum of the lines of a job. */
export async function reserveJob(
  { attempt, target, claims, holdNano }: JobReservation,
  parentRequest: unknown,
): Promise<void> {
  const parent = requireHostExchange(parentRequest);
  const labels = { ...parent.state.billing.labels, ...parent.identity!.labels };
  return reserveForJob(parent, {
    attempt,
    target: ledgerTarget(target),
    labels,
    claims,
    holdNano,
  });
}

/** Reserves for the client of a request. The reservation stays open when its process ends. */
export async function reserveForJob(
  parent: HostExchange,
  of: Pick<Reserve, "attempt" | "target" | "labels" | "claims" | "holdNano">,
  price?: Price,
): Promise<void> {
  const { gen, admission } = parent.state;
  const command: Stamped<Reserve> = {
    do: "reserve",
    at: wallClock(),
    ...of,
    request: parent.id,
    number: 1,
    key: parent.identity!.id,
    privacy: parent.privacy,
    account: admission.account?.path,
    price: price ? priceHash(price) : null,
    job: { attempt: of.attempt },
  };
  const result = await gen.ledger.reserve(command, price);
  if (!result.ok) throw createDenial(parent, result, of.claims);
}

/** Ends the reservation of a job. */
export function settleJob(
  gen: Generation,
  attempt: string,
  { costNano, outcome }: { readonly costNano: bigint; readonly outcome: string },
): Promise<void> {
  const state = costNano > 0n ? "estimated" : "void";
  const at = wallClock();
  return gen.ledger.settle({ do: "settle", at, attempt, state, usage: {}, costNano, outcome });
}

const ledgerTarget = ({ provider, model, protocol, credential }: BatchTarget) => ({
  provider,
  model,
  protocol,
  credential,
});

/** The settle row of a line that is being written. */
class LineRow {
  #row: Promise<void> | undefined;

  readonly onSettle = (row: Promise<void>): void => {
    // `requireDurable` reports the error.
    row.catch(() => undefined);
    this.#row = row;
  };

  /** Waits until the row is durable. Throws if it is not. */
  async requireDurable(): Promise<void> {
    if (this.#row && !(await settlesWithin(ROW_TIMEOUT_MS, this.#row)))
      fail("unavailable", "The bill of the line is not durable yet.");
  }
}

/** Bills a line by its result, and encodes the response for the client. */
export async function settleLine(
  gen: Generation,
  line: JobLine,
  result: BatchResult,
  of: LineSettlement,
): Promise<LineResponse> {
  const id = `${of.attempt}.${of.line}`;
  const reply = Buffer.from(JSON.stringify(result.body ?? null));
  const row = new LineRow();
  // Decided once, because the engine may stop in between.
  let isRepeated: boolean | undefined;
  const isRepeatedAfter = (problem: unknown) => (isRepeated ??= isTemporary(problem, of));
  const { x, response, body } = createLineExchange(gen, line, {
    id,
    socket: NO_SOCKET,
    jobLine: {
      terms: of.target.isBackground ? undefined : { tier: BATCH_TIER },
      pricedAt: of.pricedAt,
      attempt: of.attempt,
      reply: { status: result.status, body: reply },
      isRepeatedAfter,
      onSettle: row.onSettle,
    },
  });
  const release = gen.retain(x);
  try {
    try {
      identifyOwner(x, of);
      await receiveLine(x);
      await runCall(x, of);
    } catch (problem) {
      if (isRepeatedAfter(problem)) throw problem;
      if (x.state.billing.records.length === 0) await billUndecoded(x, result, of);
      rejectSafely(x, problem, reject);
    }
    // Before the hooks: a line whose bill is not durable is processed again.
    await row.requireDurable();
    await settle(x);
    const text = (await body) ?? fail("internal", "A response was cut off.");
    const call = x.state.billing.records.at(-1);
    return { requestId: id, status: response.statusCode, body: text.toString(), call };
  } finally {
    response.destroy();
    x.state.admission.permit.onPipelineEnd();
    release();
  }
}

/** Whether the gateway could not process a result now, and can do so later. */
function isTemporary(problem: unknown, { stopping, isLastAttempt }: LineSettlement): boolean {
  const fault = getFault(problem);
  // The provider's result is an error, or cannot be decoded. It will be the same again.
  if (isLastAttempt || (fault && isProviderFault(fault))) return false;
  return stopping?.aborted === true || (fault !== undefined && TEMPORARY_KINDS.has(fault.kind));
}

/** Sets the owner of a job. Its key and account may not exist any more. */
function identifyOwner(x: HostExchange, { key, account, labels }: LineBilling): void {
  x.identify({ id: key, labels: labels as Record<string, string> });
  if (account !== undefined)
    x.state.admission.account = {
      path: account,
      ids: account.split("/"),
      limits: [],
      hiddenScopes: new Set(),
      restrictions: {},
    };
}

async function runCall(x: HostExchange, of: LineBilling): Promise<void> {
  const call = new HostCall(x, resolveTarget(x, of).candidate, 1);
  x.state.calls.last = call;
  try {
    await new AttemptExecution(call, new ClientResponse(x), undefined).run(present);
  } catch (problem) {
    const fault = getFault(problem);
    if (fault?.param != null) fault.param = call.clientFieldName(fault.param);
    throw problem;
  }
}

/** Returns the target that a line was planned for, with its price at that time. */
function resolveTarget(x: HostExchange, { target, price }: LineBilling) {
  const { gen, frontend } = x.state;
  const { provider, model, mode } = target;
  const resolution = gen.resolver.resolve(frontend, `${provider}/${model}`, false);
  const found =
    resolution.candidates.find((one) => isTarget({ ...target, mode: one.mode }, one)) ??
    fail("unsupported", `gateway.yaml does not contain ${provider} any more.`);
  const info = { ...found.info, price: price ?? undefined };
  return { candidate: { ...found, info, mode }, resolution };
}

/** Sends a line that no provider batch runs, and bills it. Undefined if the gateway is busy. */
export async function runLine(
  gen: Generation,
  line: JobLine,
  of: LineRun,
): Promise<LineRunResponse | undefined> {
  if (!gen.admissionQueue.hasSpareCapacity) return undefined;
  const { attempt, pricedAt, target, turn, signal, stopping } = of;
  const id = `${attempt}.${of.line}${turn > 1 ? `-${turn}` : ""}`;
  const row = new LineRow();
  const jobLine = { terms: undefined, pricedAt, attempt, onSettle: row.onSettle };
  const { x, response, body } = createLineExchange(gen, line, {
    id,
    socket: NO_SOCKET,
    headers: target.headers as HeadersIn,
    jobLine,
  });
  const { permit } = x.state.admission;
  const release = gen.retain(x);
  const cancel = () => response.destroy();
  signal.addEventListener("abort", cancel, { once: true });
  if (signal.aborted) cancel();
  try {
    let again: { readonly problem: unknown } | undefined;
    try {
      identifyOwner(x, of);
      await permit.acquire();
      await receiveLine(x);
      await inspect(x);
      await dispatch(x, planTarget(x, of), present);
    } catch (problem) {
      if (canRepeat(x, problem, stopping)) again = { problem };
      rejectSafely(x, problem, reject);
    }
    await settle(x);
    if (again) throw clientFaultOf(gen, again.problem);
    // The response is not lost because of its bill.
    await row.requireDurable().catch(() => undefined);
    const text = (await body) ?? fail("canceled", "The request was canceled.");
    const { records } = x.state.billing;
    const costNano = records.reduce((sum, one) => sum + (one.costNano ?? 0n), 0n);
    const { statusCode: status } = response;
    return { requestId: id, status, body: text.toString(), call: records.at(-1), costNano };
  } finally {
    signal.removeEventListener("abort", cancel);
    response.destroy();
    permit.onPipelineEnd();
    release();
  }
}

/** Returns the error as a client may see it. */
function clientFaultOf(gen: Generation, problem: unknown): Error {
  const fault = getFault(problem);
  if (!fault || !REPEATABLE_KINDS.has(fault.kind))
    return createFault("unavailable", "The gateway stopped while it prepared this request.");
  const { kind, message, ...more } = toClientFault(gen, fault);
  return createFault(kind, message, more);
}

/** Whether a line that failed can be sent again: it is certain that no call was billed. */
function canRepeat(x: HostExchange, problem: unknown, stopping: Opt<AbortSignal>): boolean {
  const kind = getFault(problem)?.kind ?? "internal";
  const isRepeatable =
    REPEATABLE_KINDS.has(kind) || (stopping?.aborted === true && STOP_KINDS.has(kind));
  return isRepeatable && x.state.billing.records.every(({ state }) => state === "void");
}

/** Plans a request to the target of a line, without any other candidate. */
function planTarget(x: HostExchange, of: LineRun): RoutePlan {
  const { candidate, resolution } = resolveTarget(x, of);
  const { routing } = x.state;
  routing.resolution = resolution;
  const { excluded } = routing;
  const candidates = [candidate];
  return { candidates, otherEndpoints: [], failoverOn: new Set(), resolution, excluded };
}

/** Bills a result that cannot be decoded as an estimate, because the provider bills it. */
async function billUndecoded(
  { id, state }: HostExchange,
  { status }: BatchResult,
  { attempt: job, target, key, account, labels, holdNano }: LineBilling,
): Promise<void> {
  if (status < 200 || status > 299) return;
  const attempt = `${id}.1`;
  const { ledger } = state.gen;
  const at = wallClock();
  await ledger.reserve(
    {
      do: "reserve",
      at,
      attempt,
      request: id,
      number: 1,
      key,
      target: ledgerTarget(target),
      privacy: "off",
      labels,
      account,
      claims: [],
      holdNano,
      price: null,
      job: { attempt: job, take: { requests: 1n, nano_usd: holdNano ?? 0n } },
    },
    undefined,
  );
  const costNano = holdNano;
  const outcome: ErrorKind = "upstream";
  await ledger.settle({
    do: "settle",
    at,
    attempt,
    state: "estimated",
    usage: {},
    costNano,
    outcome,
  });
}
