import { wallClock } from "../../lib/time/wall-clock.ts";
import { createFault, getFault, type Fault } from "../../model/error.ts";
import type { HeadersOut } from "../../model/values.ts";
import { ClientResponse } from "../response/client-response.ts";
import { logInternalError } from "../response/transcode.ts";
import { HostCall, type ScheduledAttempt } from "../exchange/call.ts";
import { AttemptScheduler } from "../routing/attempt-scheduler.ts";
import { startTiming, endTiming } from "../routing/latency-tracking.ts";
import { clientKey } from "../exchange/client-retries.ts";
import { isPromise } from "../../lib/is-promise.ts";
import type { ConcurrencySlot } from "../targets/concurrency-limit.ts";
import type { HostExchange } from "../exchange/exchange.ts";
import { recordFailure, toClientFault } from "../upstream/provider-failure.ts";
import {
  AttemptExecution,
  type PresentStage,
  type StatedTerms,
  statedTermsOf,
} from "./attempt-execution.ts";
import { Hedge, hedgeDelayMs, type RunningAttempt } from "./hedge.ts";
import type { RoutePlan } from "./route.ts";
import type { HostCandidate } from "../exchange/mounted.ts";
import { attributeFault } from "../faults/fault-source.ts";
import type { TargetHealth } from "../routing/target-health.ts";

// Creates the error for a request for which no provider is called.
/**
 * Every provider rejects all requests of its account for some time. The error contains the shortest
 * of these times, unchanged.
 */
export function createAccountLimitedError(
  health: TargetHealth,
  candidates: readonly HostCandidate[],
  client: string,
): Error {
  const until = (one: HostCandidate) => health.statusOf(one, client)?.until ?? 0;
  const [first] = candidates.toSorted((a, b) => until(a) - until(b));
  const ms = Math.max(1, Math.floor(until(first!) - health.clock.now()));
  const { id, provider } = first!;
  const problem = createFault(
    "rate_limited",
    `${provider} rate-limited the whole account (429). Requests for ${id} are paused until the limit resets.`,
    { code: "rate_limit_exceeded", retryAfterMs: ms },
  );
  return attributeFault(problem, "gateway", provider);
}

/** Creates the execution of one call. Failure simulations replace this function. */
const createExecution = (
  call: HostCall,
  answer: ClientResponse,
  head: StatedTerms | undefined,
): RunningAttempt["execution"] => new AttemptExecution(call, answer, head);

/** Tries candidates until one answers. After the first token, no other candidate is tried. */
export async function dispatch(
  x: HostExchange,
  plan: RoutePlan,
  present: PresentStage,
  create: typeof createExecution = createExecution,
): Promise<void> {
  const { gen, connection, calls, billing } = x.state;
  const scheduler = new AttemptScheduler(x, plan);
  let attempt = scheduler.first();
  if (!attempt) throw createAccountLimitedError(gen.targetHealth, plan.candidates, clientKey(x));
  const response = new ClientResponse(x);
  let statedTerms: StatedTerms | undefined;
  let problem: unknown;
  let denial: unknown;
  let failed = true;
  while (attempt) {
    const { candidate, reason }: ScheduledAttempt = attempt;
    const { target } = candidate.mounted;
    let slot: ConcurrencySlot | undefined;
    if (reason === "spare")
      try {
        const waiting = target.acquireSlot(clientKey(x), gen.admissionQueue.maxWaitMs);
        slot = isPromise(waiting) ? await awaitSlot(x, waiting) : waiting;
      } catch (thrown) {
        // An earlier error from a provider is more useful to the client.
        problem ??= thrown;
        break;
      }
    if (connection.isDisconnected) {
      slot?.release(false);
      break;
    }
    const call: HostCall = new HostCall(x, candidate, scheduler.callNumber, attempt);
    const execution = create(call, response, statedTerms);
    startTiming(plan, call);
    calls.last = call;
    try {
      const delay = hedgeDelayMs(plan, call);
      if (delay === undefined) await execution.run(present);
      else
        await new Hedge(
          { call, response, execution },
          { plan, scheduler, present, statedTerms, createExecution: create },
        ).run(delay);
      failed = false;
      return;
    } catch (thrown) {
      problem = toFault(call, thrown);
      const isDenied = thrown === billing.denial;
      if (isDenied) denial = problem;
      calls.nextNumber = isDenied ? call.n : scheduler.callNumber + 1;
      const failure = getFault(problem)!;
      recordFailure(call, failure);
      if (connection.isDisconnected || response.isCommitted) break;
      attempt = scheduler.nextAfter(call, execution.failurePoint, failure);
      if (response.hasSentHeaders) statedTerms ??= statedTermsOf(call);
    } finally {
      if (call.latency) endTiming(call);
      if (reason === "probe") target.releaseProbe(clientKey(x));
      slot?.release(failed);
    }
    const waitMs = attempt ? attempt.waitMs : scheduler.recoveryWaitMs;
    if (waitMs !== undefined && waitMs > 0) await waitForBackoff(x, waitMs);
    if (connection.isDisconnected) break;
    if (!attempt && waitMs !== undefined) attempt = scheduler.recheck();
  }
  // A limit also denies the client's next request, so its error is more useful than that of a retry
  // that was made afterward.
  problem = denial ?? problem;
  if (response.hasSentHeaders && !connection.isDisconnected) {
    try {
      return failInStream(x, response, getFault(problem)!);
    } finally {
      response.abandon();
    }
  }
  response.abandon();
  const attempts = calls.sent?.count ?? 0;
  if (attempts > 1) x.setResponseHeader("x-tollgate-attempts", String(attempts));
  throw problem;
}

/**
 * Waits for a concurrency slot at a failing target. This time counts as time to wait for the
 * provider, like the wait for its response.
 */
async function awaitSlot(
  x: HostExchange,
  place: Promise<ConcurrencySlot>,
): Promise<ConcurrencySlot> {
  const { connection } = x.state;
  const began = performance.now();
  try {
    return await place;
  } finally {
    connection.externalWaitMs += performance.now() - began;
  }
}

/**
 * Waits before the next attempt, unless the client disconnects. This time counts as time to wait
 * for the provider, like the wait for its response.
 */
function waitForBackoff(x: HostExchange, ms: number): Promise<void> {
  const { connection } = x.state;
  const began = performance.now();
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, ms);
  connection.disconnectListeners.push(() => {
    clearTimeout(timer);
    resolve();
  });
  return promise.then(() => void (connection.externalWaitMs += performance.now() - began));
}

/** Converts a thrown error to a fault for the client, with field names as the client wrote them. */
function toFault(call: HostCall, thrown: unknown): unknown {
  const failure = getFault(thrown);
  if (!failure) {
    const { kind, message } = logInternalError(call, thrown);
    return createFault(kind, message);
  }
  if (failure.param !== undefined) failure.param = call.clientFieldName(failure.param);
  return thrown;
}

/**
 * Writes an error in the client's protocol into a stream whose headers were sent and for which no
 * candidate answered.
 */
function failInStream(x: HostExchange, answer: ClientResponse, failure: Fault): void {
  const { gen, frontend, outcome } = x.state;
  outcome.fault = failure;
  answer.begin(undefined, {} satisfies HeadersOut);
  answer.commit();
  answer.failWith(() =>
    frontend
      .server!.createEncoder((piece) => answer.write(piece), {
        id: x.id,
        model: x.model,
        created: Math.floor(wallClock() / 1000),
        stream: true,
        body: x.body,
        query: x.query,
        reportLoss() {},
      })
      .writeFault(toClientFault(gen, failure)),
  );
}
