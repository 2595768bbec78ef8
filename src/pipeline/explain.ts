import { startTrace } from "./exchange/trace.ts";
import type { HedgeDelays, RoutingStrategy } from "../model/route-settings.ts";
import { chatOperation } from "../model/operations/chat-operation.ts";
import { emptyRealtimeRequest } from "../model/operations/realtime-operation.ts";
import { getFault } from "../model/error.ts";
import type { Privacy } from "../model/facts.ts";
import type { OperationSpec } from "../model/operations/operation-spec.ts";
import type { Exchange } from "../plugin/exchange.ts";
import type { RelaySocketRoute } from "../plugin/frontend.ts";
import type { Identity } from "../plugin/identity.ts";
import type { Generation } from "./generation.ts";
import type { MountedFrontend, HostCandidate } from "./exchange/mounted.ts";
import type { HypotheticalExchange } from "./hooks/hook-guard.ts";
import type { RoutingRuleInputs } from "./routing/routing-rules.ts";
import { assertFrontendAllowed, stricterPrivacy } from "./accounts/accounts.ts";
import { nextRequestId } from "../lib/request-id.ts";
import { selectRelays } from "./sockets/open-relay.ts";
import { route } from "./stages/route.ts";

export interface RouteExplanation {
  readonly strategy: RoutingStrategy;
  readonly hedge?: HedgeDelays | undefined;
  readonly candidates: readonly {
    candidate: HostCandidate;
    translatedBecause: string | undefined;
    /** Reason for the candidate's position in the order. */
    orderReason: string | undefined;
  }[];
  readonly excluded: readonly {
    candidate: HostCandidate;
    by: string;
    code: string;
    message: string;
  }[];
  readonly notes: readonly string[];
}

/** Whether requests for models arrive through the frontend. */
export const servesModels = ({
  server,
  protocol,
}: Pick<MountedFrontend, "server" | "protocol">): boolean =>
  server !== undefined || protocol?.socket !== undefined;

/** Returns the relay of a frontend that serves models through a relay alone. */
const relayRouteOf = ({ server, plugin }: MountedFrontend): RelaySocketRoute | undefined =>
  server
    ? undefined
    : (plugin.sockets ?? []).find((one): one is RelaySocketRoute => "readModel" in one);

/** The client on whose behalf the route is explained. */
export interface HypotheticalClient {
  readonly identity?: Identity | undefined;
  readonly privacy?: Privacy | undefined;
}

/**
 * Explains how a plain request for a model would be routed. It runs the route stage on a
 * hypothetical request.
 */
export async function explainRoute(
  gen: Generation,
  frontend: MountedFrontend,
  model: string,
  estimateLatency: RoutingRuleInputs["estimateLatency"],
  client: HypotheticalClient = {},
): Promise<RouteExplanation> {
  const resolution = gen.resolver.resolve(frontend, model, false);
  const work = frontend.protocol?.operationSpec ?? chatOperation;
  try {
    const x = createHypotheticalExchange(
      frontend,
      model,
      work,
      admitHypothetical(gen, frontend, client),
    );
    const { output, images } = work.priceExamples[0].usage;
    const survey = { features: [], references: [], maxOutput: output, n: images };
    // A fixed random value gives the most likely order.
    const hypothetical = { random: () => 0.5, estimateLatency };
    const plan = await route({
      gen,
      frontend,
      x,
      operationSpec: work,
      facts: survey,
      hypothetical,
      pinnedTarget: undefined,
      routing: { resolution: undefined, excluded: [], coolingDown: undefined },
    });
    const { strategy, routingRule } = plan.resolution;
    const inputs = {
      x,
      frontend,
      facts: survey,
      operationSpec: work,
      outputHistory: gen.outputHistory,
      ...hypothetical,
    };
    const place = (candidate: HostCandidate) =>
      routingRule?.explain(candidate, plan.candidates, inputs);
    const relay = relayRouteOf(frontend);
    const choice = relay && selectRelays(plan, frontend, relay.action, model);
    const candidates = choice ? choice.relays.map((one) => one.candidate) : plan.candidates;
    return {
      strategy,
      // A connection is opened to one candidate after the other.
      hedge: relay ? undefined : plan.resolution.hedge,
      candidates: candidates.map((candidate) => ({
        candidate,
        translatedBecause: plan.resolution.translationReasons.get(candidate),
        orderReason: place(candidate),
      })),
      excluded: [
        ...plan.excluded.map(({ candidate, by, code, message }) => ({
          candidate: candidate as HostCandidate,
          by,
          code,
          message,
        })),
        ...(choice?.refused ?? []).map((one) => ({ ...one, code: "no_such_operation" })),
      ],
      notes: plan.resolution.notes,
    };
  } catch (problem) {
    const fault = getFault(problem);
    if (!fault) throw problem;
    return {
      strategy: resolution.strategy,
      candidates: [],
      excluded: resolution.candidates.map((candidate) => ({
        candidate,
        by: "route",
        code: fault.code ?? fault.kind,
        message: fault.message,
      })),
      notes: resolution.notes,
    };
  }
}

/** Admits the hypothetical client as the host would. Throws the same errors. */
function admitHypothetical(
  { accounts }: Generation,
  frontend: MountedFrontend,
  { identity: givenIdentity, privacy = "off" }: HypotheticalClient,
): Required<HypotheticalClient> {
  if (!givenIdentity) return { identity: { id: "explain" }, privacy };
  const identity =
    givenIdentity.account === undefined
      ? givenIdentity
      : accounts.restrict(givenIdentity, accounts.resolve(givenIdentity.account));
  assertFrontendAllowed(identity, frontend.name);
  return { identity, privacy: stricterPrivacy(privacy, identity.privacy ?? "off") };
}

/**
 * Creates the smallest request for a model, as hooks see it. The host uses only the stricter
 * privacy level that a hook may set. All other changes by hooks are ignored.
 */
function createHypotheticalExchange(
  frontend: MountedFrontend,
  model: string,
  { name, priceExamples }: OperationSpec,
  client: Required<HypotheticalClient>,
): Exchange {
  const { routes } = frontend.plugin;
  const route = routes.find((one) => "actionType" in one && one.actionType === "generate");
  const relay = relayRouteOf(frontend);
  const body = { model };
  let privacy: Privacy = client.privacy ?? "off";
  const x: HypotheticalExchange = {
    isHypothetical: true,
    id: nextRequestId(),
    trace: startTrace({}),
    frontend: frontend.name,
    method: "POST",
    path: [route?.path ?? relay?.path ?? "/"].flat()[0]!,
    address: "",
    params: {},
    headers: {},
    query: new URLSearchParams(),
    signal: new AbortController().signal,
    certificate: undefined,
    credentialSources: [],
    cookies: {},
    limits: [],
    identity: client.identity,
    get privacy() {
      return privacy;
    },
    identify() {},
    requirePrivacy(to) {
      privacy = stricterPrivacy(privacy, to);
    },
    acquireSlot() {},
    setResponseHeader() {},
    addLabel() {},
    setRpcOperation() {},
    inputSize: { bytes: 0, tokens: priceExamples[0].usage.input ?? 0 },
    readBody: () => Promise.resolve(x),
    protocol: frontend.protocol?.id ?? "",
    operation: name,
    actionType: "generate",
    action: relay?.action ?? "generate",
    model,
    stream: false,
    features: [],
    body,
    get request() {
      return frontend.server?.decodeRequest(body, "generate") ?? emptyRealtimeRequest(model);
    },
  };
  return x;
}
