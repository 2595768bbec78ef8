// Runs the stages of a request in their order.
//
//     headers → admit → receive → edit → rewrite → inspect → route → dispatch → present
//
// `settle` runs after all other stages, exactly once.
import type { IncomingMessage, ServerResponse } from "node:http";
import { nextRequestId } from "../lib/request-id.ts";
import { fail, getFault } from "../model/error.ts";
import { scopeValuesOf } from "./scopes/scope-values.ts";
import { SCOPE_EXHAUSTED } from "./metering/charges.ts";
import type { SubrequestResult, SubrequestOptions, Subrequest } from "../plugin/context.ts";
import type { RouteInput } from "../plugin/frontend.ts";
import { admit } from "./stages/admit.ts";
import { relay, countTokens } from "./stages/unbilled.ts";
import { claimIdempotencyKey, freeIfUnbilled, completeClaim } from "./stages/idempotency-stage.ts";
import { dispatch } from "./stages/dispatch.ts";
import {
  readSubrequestResult,
  createSubrequestConnection,
  subrequestDepth,
  inheritFromParent,
  MAX_SUBREQUEST_DEPTH,
  excludePluginHooks,
} from "./subrequest.ts";
import { runInBackground } from "./background-request.ts";
import { HostExchange, type SubrequestOrigin } from "./exchange/exchange.ts";
import type { SocketLane } from "./exchange/socket-lane.ts";
import type { Generation } from "./generation.ts";
import { runSequentially } from "./hooks/hook-runner.ts";
import type { MountedRoute } from "./exchange/mounted.ts";
import { edit } from "./stages/edit.ts";
import { present } from "./stages/present.ts";
import { receive } from "./stages/receive.ts";
import { reject } from "./stages/reject.ts";
import { route, type RoutePlan } from "./stages/route.ts";
import { sendAnswer, serve } from "./stages/serve.ts";
import { rejectSafely, settle } from "./stages/settle.ts";
import { isPromise } from "../lib/is-promise.ts";

/**
 * Runs the rewrite hooks once, before routing. The body is decoded only if there are rewrite hooks.
 */
export function rewrite(x: HostExchange): void | Promise<void> {
  const { frontend, body } = x.state;
  const hooks = frontend.hooks.lists.rewrite;
  if (hooks.length === 0 || x.actionType === "relay") return;
  return runSequentially(hooks, x.model, (hook) => {
    const request = hook.run(body.rewritten ?? x.request, x);
    if (isPromise(request)) return request.then((got) => void (body.rewritten = got));
    body.rewritten = request;
  });
}

/**
 * Runs the inspect hooks once, on the final version of the request. They may reject it but not
 * change it.
 */
export function inspect(x: HostExchange): void | Promise<void> {
  const { frontend, body } = x.state;
  const hooks = frontend.hooks.lists.inspect;
  if (hooks.length === 0 || x.actionType === "relay") return;
  return runSequentially(hooks, x.model, (hook) => hook.run(body.rewritten ?? x.request, x));
}

export interface IncomingRequest {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  readonly params: { readonly [name: string]: string };
}

export function runPipeline(
  gen: Generation,
  mounted: MountedRoute,
  incoming: IncomingRequest,
): Promise<void> {
  return runToSettlement(createExchange(gen, mounted, incoming), mounted);
}

/**
 * Runs a request that a message of a WebSocket makes, and returns it when it is settled. The
 * response is written to `res`.
 */
export async function runSocketRequest(
  gen: Generation,
  mounted: MountedRoute,
  incoming: IncomingRequest,
  origin: SocketOrigin,
): Promise<HostExchange> {
  const x = createExchange(gen, mounted, incoming, origin);
  await runToSettlement(x, mounted);
  return x;
}

/** The members are listed, because a spread between them costs every request time. */
const createExchange = (
  gen: Generation,
  route: MountedRoute,
  { req, res, params }: IncomingRequest,
  { lane, session }: Partial<SocketOrigin> = NO_SOCKET,
) =>
  new HostExchange({ id: nextRequestId(), gen, route, req, res, params, receive, lane, session });

/** The lane and the handshake of a request that a message of a WebSocket makes. */
interface SocketOrigin {
  readonly lane: SocketLane;
  readonly session: HostExchange;
}
const NO_SOCKET: Partial<SocketOrigin> = {};

/** Runs a subrequest for a plugin, on behalf of the request that the plugin is handling. */
export async function runSubrequest(
  pluginId: string,
  request: Subrequest,
  { parentRequest, signal, onEvent }: SubrequestOptions,
): Promise<SubrequestResult> {
  const parent =
    parentRequest instanceof HostExchange
      ? parentRequest
      : fail("invalid", "`as` must be a request.");
  if (subrequestDepth(parent) >= MAX_SUBREQUEST_DEPTH)
    fail("internal", `Subrequests can be nested at most ${MAX_SUBREQUEST_DEPTH} levels deep.`, {
      code: "subrequest_too_deep",
    });
  const { path } = request;
  if (request.body["stream"] === true && !onEvent)
    fail("invalid", "A subrequest can be streamed only with onEvent.");
  const { gen } = parent.state;
  const { mounted: targetRoute, params } =
    gen.findSubrequestRoute(path) ?? fail("not_found", `No frontend serves ${path}.`);
  const origin: SubrequestOrigin = {
    parentRequest: parent,
    pluginIds: [...new Set([...(parent.subrequestOrigin?.pluginIds ?? []), pluginId])],
  };
  const { req, res, responseBody } = createSubrequestConnection(origin, request, onEvent);
  const mounted = excludePluginHooks(targetRoute, origin.pluginIds);
  const x = new HostExchange({
    id: nextRequestId(),
    gen,
    route: mounted,
    req,
    res,
    params,
    receive,
    origin,
  });
  const abortSignal = AbortSignal.any([parent.signal, ...(signal ? [signal] : [])]);
  const abort = () => void res.destroy();
  abortSignal.addEventListener("abort", abort);
  if (abortSignal.aborted) abort();
  const settled = Promise.withResolvers<void>();
  const { body, billing } = parent.state;
  if (body.received?.answer) (billing.openAnswers ??= new Map()).set(settled.promise, abort);
  try {
    await runToSettlement(x, mounted);
    return await readSubrequestResult(x, responseBody);
  } finally {
    if (body.received?.answer) (billing.answerRecords ??= []).push(...x.state.billing.records);
    billing.openAnswers?.delete(settled.promise);
    settled.resolve();
    abortSignal.removeEventListener("abort", abort);
  }
}

/**
 * Cancels the subrequests of an answer that has failed, and waits for their records. Without them, a
 * request whose client disconnected would seem to have cost nothing.
 */
async function settleOpenAnswers({ state: { billing } }: HostExchange): Promise<void> {
  while (billing.openAnswers && billing.openAnswers.size > 0) {
    for (const cancel of billing.openAnswers.values()) cancel();
    await Promise.all(billing.openAnswers.keys());
  }
}

async function runToSettlement(x: HostExchange, mounted: MountedRoute): Promise<void> {
  const releaseGeneration = x.state.gen.retain(x);
  try {
    try {
      await runStages(x, mounted);
    } catch (problem) {
      if (x.state.admission.idempotencyClaim && x.state.billing.openAnswers)
        await settleOpenAnswers(x);
      const freeing = freeIfUnbilled(x);
      if (freeing) await freeing;
      rejectSafely(x, problem, reject);
    }
    const settling = settle(x);
    if (settling) await settling;
    if (x.backgroundRequest) await x.backgroundRequest.end();
  } finally {
    completeClaim(x);
    x.state.admission.permit.onPipelineEnd();
    releaseGeneration();
  }
}

/**
 * Runs the stages up to the response. It awaits only stages that return a promise, because each
 * `await` costs a promise and a microtask.
 */
async function runStages(x: HostExchange, { route: routeDefinition }: MountedRoute): Promise<void> {
  const { subrequestOrigin } = x;
  if ("handle" in routeDefinition)
    return await serve(
      x,
      routeDefinition,
      subrequestOrigin ? () => inheritFromParent(x, subrequestOrigin) : admit,
    );
  const { gen, body, routing, admission } = x.state;
  const { permit } = admission;
  // A subrequest uses its parent's admission slot. If a subrequest waited for a separate slot,
  // parent and subrequest could deadlock.
  if (subrequestOrigin) inheritFromParent(x, subrequestOrigin);
  else permit.assertNotOverloaded();
  const admitting = subrequestOrigin ? undefined : admit(x);
  if (admitting) await admitting;
  const queued = subrequestOrigin ? undefined : permit.acquire();
  if (queued) await queued;
  await x.readBody();
  const { background, answer } = body.received!;
  if (background) runInBackground(x, background);
  if (answer && x.actionType === "relay") {
    permit.releaseWork();
    return sendAnswer(x, await answerOf(answer));
  }
  const { scopes } = gen;
  if (!scopes.isEmpty) scopeValuesOf(x);
  const claiming = claimIdempotencyKey(x);
  if (claiming) await claiming;
  const editing = edit(x);
  if (editing) await editing;
  const rewriting = rewrite(x);
  if (rewriting) await rewriting;
  const { facts, pinnedTarget } = body.received!;
  const inspecting = inspect(x);
  if (inspecting) await inspecting;
  const routed = route({
    gen,
    frontend: x.state.frontend,
    x,
    operationSpec: x.operationSpec,
    facts,
    pinnedTarget,
    rewrittenRequest: body.rewritten,
    routing,
    admission,
  });
  const plan = isPromise(routed) ? await routed : routed;
  if (background?.startJob && !answer && (await x.backgroundRequest!.startJob(plan.candidates)))
    return;
  if (answer) return sendAnswer(x, await answerOf(answer));
  if (x.actionType === "count") return countTokens(x, plan);
  if (x.actionType === "relay") return relay(x, plan);
  return scopes.hasDowngrades ? dispatchOrDowngrade(x, plan) : dispatch(x, plan, present);
}

const answerOf = (answer: NonNullable<RouteInput["answer"]>) =>
  typeof answer === "function" ? answer() : answer;

/**
 * Calls the plan's candidates. If the limit of a scope rejects the request and names another model,
 * the request is routed once more, to that model. No byte of a response has been sent then.
 */
async function dispatchOrDowngrade(x: HostExchange, plan: RoutePlan): Promise<void> {
  try {
    return await dispatch(x, plan, present);
  } catch (problem) {
    const { billing, calls, connection, gen, frontend, body, routing } = x.state;
    const offer = billing.downgradeOffer;
    if (!offer || getFault(problem)?.code !== SCOPE_EXHAUSTED.code) throw problem;
    if (connection.res.headersSent || connection.isDisconnected) throw problem;
    const { scope, model } = offer;
    const { facts, pinnedTarget } = body.received!;
    let other: RoutePlan;
    try {
      other = await route({
        gen,
        frontend,
        x,
        operationSpec: x.operationSpec,
        facts,
        pinnedTarget,
        rewrittenRequest: body.rewritten,
        routing,
        admission: x.state.admission,
        downgradeModel: model,
      });
    } catch {
      throw problem;
    }
    billing.downgrade = { ...offer, firstCall: calls.nextNumber! };
    x.setResponseHeader("x-tollgate-downgrade", `${scope}; ${x.model} -> ${model}`);
    return dispatch(x, other, present);
  }
}
