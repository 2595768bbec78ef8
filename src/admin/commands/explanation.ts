// Explains the routing of a request for a model in a generation, as messages for people and as data
// for programs.
import type { GatewayConfig, Timeouts } from "../../config/gateway-config.ts";
import { fail, getFault } from "../../model/error.ts";
import type { ModelInfo, Privacy } from "../../model/facts.ts";
import type { SocketRoute } from "../../plugin/frontend.ts";
import {
  explainRoute,
  servesModels,
  type RouteExplanation,
  type HypotheticalClient,
} from "../../pipeline/explain.ts";
import { requestSocketOf } from "../../pipeline/upstream/send-over-socket.ts";
import { timeoutClassOf } from "../../pipeline/targets/timeouts.ts";
import type { BuiltGeneration } from "../../runtime/generation/build-generation.ts";
import type { HostCandidate } from "../../pipeline/exchange/mounted.ts";
import type {
  ExplainedCandidate,
  RequestExplanation,
  CooldownStatus,
  GatewayStatus,
} from "../../runtime/gateway-api.ts";
import type { CooldownState } from "../../plugin/gateway-stats.ts";
import { COOLDOWN_STATES, SCORE_MARGIN, scoreOf } from "../../pipeline/targets/target-status.ts";

export async function explainRequest(
  built: BuiltGeneration,
  config: GatewayConfig,
  model: string,
  of: { name?: string | undefined; client?: HypotheticalClient } & Partial<
    Pick<GatewayStatus, "cooldowns" | "quarantinedHooks" | "latencies">
  > = {},
): Promise<RequestExplanation> {
  const { name, client, cooldowns = [], quarantinedHooks = [], latencies = [] } = of;
  const speaking = built.frontends.filter(servesModels);
  const named = speaking.filter(
    (f) => name === undefined || f.name === name || f.protocol?.id === name,
  );
  const frontend = findFrontendFor(named, built, model);
  if (!frontend)
    return fail(
      "not_found",
      name === undefined
        ? "No configured frontend can call this model."
        : `Unknown frontend "${name}". Available: ${speaking.map((f) => f.name).join(", ") || "none"}.`,
    );
  const estimate = (candidate: HostCandidate) => latencyOf(candidate, latencies);
  const explained = await explainRoute(built.gen, frontend, model, estimate, client).catch(
    (error: unknown) => {
      const absent = built.gen.resolver.explainUnmounted(model);
      const fault = getFault(error);
      if (!fault || absent.length === 0) throw error;
      return fail(fault.kind, `${fault.message} Left out: ${absent.join("; ")}.`, {
        code: fault.code,
        param: fault.param,
      });
    },
  );
  const socket = built.sockets.find((one) => one.frontend === frontend)?.route;
  const first = explained.candidates[0]?.candidate ?? explained.excluded[0]?.candidate;
  const turns = orderCandidates(
    explained.candidates,
    ({ candidate }) => cooldowns.filter(isAboutCandidate(candidate)),
    {
      key: client?.identity?.id,
    },
  );
  const hooks = Object.fromEntries(
    Object.entries(frontend.hooks.lists).map(([hook, list]) => [
      hook,
      (list as readonly { readonly id: string }[]).map(({ id }) => id),
    ]),
  );
  return {
    model,
    frontend: frontend.name,
    strategy: explained.strategy,
    candidates: [
      ...turns.map(
        ({
          candidate: { candidate, translatedBecause, orderReason },
          cooldown,
          callOrder,
          isCoolingDown,
        }) => ({
          id: candidate.id,
          credential: candidate.credential,
          protocol: candidate.protocol,
          mode: candidate.mode,
          transport: transportOf(socket, candidate, client?.privacy ?? "off"),
          callOrder,
          isCoolingDown,
          translationReason: translatedBecause,
          orderReason,
          cooldown: cooldown && toShownCooldown(cooldown),
        }),
      ),
      ...explained.excluded.map(({ candidate, by, code, message }) => ({
        id: candidate.id,
        credential: candidate.credential,
        protocol: candidate.protocol,
        mode: candidate.mode,
        excluded: { by, code, message },
      })),
    ],
    hooks,
    quarantinedHooks: quarantinedHooks.filter(({ plugin, hook }) => hooks[hook]?.includes(plugin)),
    hedgeDelays: hedgeDelaysOf(explained),
    timeouts: timeoutsOf(
      built.providers.get(first?.provider ?? "")?.timeouts ?? config.timeouts,
      first?.info,
    ),
    sockets: socketsOf(built, frontend),
    notes: explained.notes,
  };
}

/** Returns how requests of a client's WebSocket are sent. */
function transportOf(
  socket: SocketRoute | undefined,
  { mounted }: HostCandidate,
  privacy: Privacy,
): ExplainedCandidate["transport"] {
  if (!socket) return undefined;
  const { transport } = mounted.endpoint;
  const isSent =
    !("openSession" in socket) ||
    (transport && requestSocketOf(transport.definition, socket.action ?? "generate", privacy));
  return isSent ? "websocket" : "http";
}

/**
 * Whether a cooldown in `status` applies to this candidate: to its model or to all models of its
 * credential.
 */
const isAboutCandidate =
  ({ provider, credential, model }: HostCandidate) =>
  ({ target }: CooldownStatus): boolean =>
    target === `${provider} ${credential}` || target === `${provider} ${credential} ${model}`;

const toShownCooldown = ({ target: _, ...rest }: CooldownStatus): ExplainedCandidate["cooldown"] =>
  rest;

/** Returns the latency of a streamed request, if known. */
function latencyOf(
  { provider, credential, model }: HostCandidate,
  latencies: GatewayStatus["latencies"],
): number {
  const its = latencies.filter(({ target }) => target === `${provider} ${credential} ${model}`);
  return (its.find(({ stream }) => stream) ?? its[0])?.estimateMs ?? 0;
}

/**
 * Returns the hedge delays by call class of the candidates, for streaming and non-streaming
 * requests. Undefined if the route does not hedge or has no second candidate.
 */
function hedgeDelaysOf({ hedge, candidates }: RouteExplanation): RequestExplanation["hedgeDelays"] {
  if (!hedge || candidates.length < 2) return undefined;
  const found = new Map<string, number>();
  for (const { candidate } of candidates)
    for (const stream of [true, false]) {
      const its = timeoutClassOf({ info: candidate.info, stream });
      const afterMs = hedge.classes.get(its) ?? hedge.allMs;
      if (afterMs !== undefined) found.set(its, afterMs);
    }
  return [...found].map(([of, afterMs]) => ({ class: of, afterMs }));
}

/** Returns one of the frontends that serves the model, preferably with passthrough. */
function findFrontendFor(
  frontends: BuiltGeneration["frontends"],
  { gen }: BuiltGeneration,
  model: string,
): BuiltGeneration["frontends"][number] | undefined {
  const routes = frontends.flatMap((frontend) => {
    try {
      const [candidate] = gen.resolver.resolve(frontend, model, false).candidates;
      return candidate ? [{ frontend, mode: candidate.mode }] : [];
    } catch {
      return [];
    }
  });
  return (
    routes.find(({ mode }) => mode === "passthrough")?.frontend ??
    routes[0]?.frontend ??
    frontends[0]
  );
}

/** Returns the WebSockets of a frontend. */
function socketsOf(
  { sockets }: Pick<BuiltGeneration, "sockets">,
  frontend: BuiltGeneration["frontends"][number],
): RequestExplanation["sockets"] {
  const routes = new Set(
    sockets.filter((one) => one.frontend === frontend).map(({ route }) => route),
  );
  return [...routes].map((route) => ({
    type: "openSession" in route ? "requests" : "relay",
    paths: sockets.filter((one) => one.route === route).map(({ path }) => path),
    calls: "calls" in route && route.calls !== undefined ? [route.calls].flat() : [],
  }));
}

/** Returns the timeouts of a streamed request. */
function timeoutsOf(
  { connectMs, classes, ...plain }: Timeouts,
  info: ModelInfo | undefined,
): RequestExplanation["timeouts"] {
  const its = info && classes.get(timeoutClassOf({ info, stream: true }));
  return { connectMs, ...plain, ...its };
}

// Determines the order in which candidates are called, from the reports of all processes. The rules
// are the rules of the pipeline: a cooldown only changes the order, and a candidate whose provider
// rejects all requests is not called.

type ReportedCooldown = Pick<
  CooldownState,
  "state" | "until" | "rejectsRequests" | "keys" | "score"
>;

interface CandidatePosition<C, R> {
  readonly candidate: C;
  /**
   * The cooldown that applies to the key. If there is none, a cooldown that applies only to other
   * keys. Undefined if there is none.
   */
  readonly cooldown: R | undefined;
  readonly callOrder: NonNullable<ExplainedCandidate["callOrder"]>;
  /** Whether `cooldown` applies to this request and moves the candidate behind the others. */
  readonly isCoolingDown: boolean;
}

/**
 * @param key Key of the request. If undefined, cooldowns of individual keys do not apply.
 */
export function orderCandidates<C, R extends ReportedCooldown>(
  candidates: readonly C[],
  restsOf: (one: C) => readonly R[],
  { key }: { readonly key: string | undefined },
): CandidatePosition<C, R>[] {
  const known = candidates.map((of) => {
    const all = restsOf(of).toSorted((a, b) => b.until - a.until);
    const own = all.filter(({ keys }) => !keys || (key !== undefined && keys.includes(key)));
    const counts = own.find(({ state }) => COOLDOWN_STATES.has(state));
    const rest = counts ?? own[0] ?? all[0];
    return {
      of,
      rest,
      counts,
      refused: own.some(({ rejectsRequests }) => rejectsRequests === true),
    };
  });
  const inCooldown = known.filter(({ counts }) => counts);
  const isLast = ({ counts, rest }: (typeof known)[number]) =>
    counts !== undefined ||
    (rest !== undefined &&
      inCooldown.some(
        (other) => promiseScoreOf(other.counts!) > promiseScoreOf(rest) + SCORE_MARGIN,
      ));
  const places = known.filter((one) => !isLast(one));
  const cooling = known
    .filter((one) => isLast(one) && !(one.counts && one.refused))
    .toSorted(
      (a, b) => promiseScoreOf((b.counts ?? b.rest)!) - promiseScoreOf((a.counts ?? a.rest)!),
    );
  const called = [...places, ...cooling].map(({ of, rest, counts }, at) => ({
    candidate: of,
    cooldown: rest,
    isCoolingDown: counts !== undefined,
    callOrder: at === 0 ? ("first" as const) : counts ? ("last" as const) : ("next" as const),
  }));
  const refused = known.filter(({ counts, refused: is }) => counts && is);
  return [
    ...called,
    ...refused.map(({ of, rest }) => ({
      candidate: of,
      cooldown: rest,
      isCoolingDown: true,
      callOrder: "not_called" as const,
    })),
  ];
}

const promiseScoreOf = ({ state, score = 1 }: ReportedCooldown): number =>
  scoreOf(state, score ?? 1);
