import { isPromise } from "../../lib/is-promise.ts";
import { wallClock } from "../../lib/time/wall-clock.ts";
import { findOperationPath } from "../upstream/encode-request.ts";
import { isStateful, satisfies } from "../../catalog/data-policy.ts";
import type { ErrorKind } from "../../model/error.ts";
import type { Feature } from "../../model/facts.ts";
import type { ModelRequest, ChatRequest } from "../../model/request.ts";
import type { OperationSpec } from "../../model/operations/operation-spec.ts";
import type { Candidate } from "../../plugin/call.ts";
import type { Exchange } from "../../plugin/exchange.ts";
import type { RouteResult } from "../../plugin/middleware.ts";
import type { RequestFacts } from "../../plugin/references.ts";
import { isPaidByClient } from "../exchange/client-credential.ts";
import type { AdmissionState, ReceivedBody } from "../exchange/exchange-state.ts";
import type { Generation } from "../generation.ts";
import type { HostCandidate, MountedFrontend } from "../exchange/mounted.ts";
import { firstApplicable, runReducing } from "../hooks/hook-runner.ts";
import { clientKey } from "../exchange/client-retries.ts";
import { exclude, throwNoCandidates, pinToAccount } from "../routing/exclusions.ts";
import { matchesPattern } from "../../catalog/model-names.ts";
import { rejectImageUrlUnderZdr } from "../response/images.ts";
import { effectivePolicyOf } from "../privacy/candidate-policy.ts";
import { findRetainedFeature, featuresReaching } from "../privacy/zero-retention.ts";
import { orderCandidates, type RoutingRuleInputs } from "../routing/routing-rules.ts";
import type {
  ExcludedCandidate,
  IsNameAllowed,
  Resolution,
  RoutingState,
} from "../routing/resolution.ts";

/**
 * The inputs of routing: the exchange as hooks see it, and additional data that only the host has.
 */
export interface RouteInputs {
  readonly gen: Pick<Generation, "resolver" | "targetHealth" | "catalog" | "outputHistory">;
  readonly frontend: MountedFrontend;
  readonly x: Exchange;
  readonly operationSpec: OperationSpec;
  readonly facts: RequestFacts;
  readonly pinnedTarget: ReceivedBody["pinnedTarget"];
  readonly routing: RoutingState;
  /** The request after the rewrite hooks. If unset, the client's own request. */
  readonly rewrittenRequest?: ModelRequest | undefined;
  /** The client's account and its own credential. Unset if nothing is sent. */
  readonly admission?: Pick<AdmissionState, "account" | "clientCredential"> | undefined;
  /** Model that the request is routed to instead, because a scope has used up a limit. */
  readonly downgradeModel?: string | undefined;
  /** Replaces randomness and measured latency if nothing is sent. */
  readonly hypothetical?: Pick<RoutingRuleInputs, "random" | "estimateLatency">;
}

export interface RoutePlan {
  readonly candidates: readonly HostCandidate[];
  /**
   * Other endpoints of the same candidates. They may support a field that the first endpoint's
   * protocol lacks.
   */
  readonly otherEndpoints: readonly HostCandidate[];
  readonly failoverOn: ReadonlySet<ErrorKind>;
  readonly resolution: Resolution;
  /** Excluded candidates with reasons. `explain` prints them. */
  readonly excluded: readonly ExcludedCandidate[];
}

/**
 * Finds the candidates that could serve a request. Missing capabilities or permissions, privacy,
 * and route hooks may exclude some.
 */
export function route(inputs: RouteInputs): RoutePlan | Promise<RoutePlan> {
  const { routing, frontend, gen, x } = inputs;
  const { excluded } = routing;
  rejectImageUrlUnderZdr(x);
  const allowed = x.identity?.models;
  const isAllowed: IsNameAllowed = (name) =>
    allowed?.some((pattern) => matchesPattern(pattern, name)) ?? true;
  const resolution = gen.resolver.resolve(
    frontend,
    inputs.downgradeModel ?? x.model,
    x.stream,
    isAllowed,
  );
  const clientProvider = clientProviderOf(routing.resolution) ?? clientProviderOf(resolution);
  routing.resolution = resolution;
  // Candidates are ordered before the hooks run, so hooks see them in the order in which they would
  // be tried. The hooks' order is final.
  const list = runRouteHooks(
    inputs,
    orderCandidates(
      inputs,
      resolution,
      filterCandidates(inputs, resolution.candidates, isAllowed, excluded, clientProvider),
    ),
    excluded,
  );
  return isPromise(list)
    ? list.then((candidates) => createPlan(inputs, candidates, resolution, isAllowed, excluded))
    : createPlan(inputs, list, resolution, isAllowed, excluded);
}

/**
 * Returns the provider to which the client's own credential is bound: the first one in the order of
 * gateway.yaml, whatever its health. After a downgrade, it is the provider of the requested model.
 */
const clientProviderOf = (resolution: Resolution | undefined): string | undefined =>
  resolution?.candidates.find(isPaidByClient)?.provider;

/** Filters candidates by their metadata and by the request. */
function filterCandidates(
  { frontend, x, operationSpec, facts, pinnedTarget, downgradeModel, admission }: RouteInputs,
  all: readonly HostCandidate[],
  isAllowed: IsNameAllowed,
  excluded: ExcludedCandidate[],
  clientProvider: string | undefined,
): readonly HostCandidate[] {
  // A key may read a stored object if its ledger row belongs to the key. To continue a stored
  // object, the request needs a model. The key must be allowed to use that model, by the name in
  // the request or by the model's own name.
  const requestedModel = x.body["model"];
  const named =
    isAllowed(downgradeModel ?? x.model) ||
    (pinnedTarget !== undefined &&
      (x.actionType === "relay" ||
        (typeof requestedModel === "string" && isAllowed(requestedModel))));
  let candidates = all.filter((candidate) => {
    if (!named && !isAllowed(candidate.id))
      return exclude(
        excluded,
        candidate,
        "key",
        "forbidden",
        "model_not_allowed",
        "this key may not use it",
      );
    if (isPaidByClient(candidate)) {
      if (candidate.provider !== clientProvider)
        return exclude(
          excluded,
          candidate,
          "credential",
          "unauthenticated",
          MISSING_CODE,
          `the client's credential is sent only to ${clientProvider}`,
        );
      if (admission && !hasClientCredential(candidate, admission, excluded)) return false;
    }
    if (
      pinnedTarget &&
      (pinnedTarget.credential !== candidate.credential || candidate.protocol !== x.protocol)
    )
      return exclude(
        excluded,
        candidate,
        "state",
        "not_found",
        "not_found",
        "the object was created by another provider",
      );
    if (!supportsOperation(candidate, x))
      return exclude(
        excluded,
        candidate,
        "endpoint",
        "unsupported",
        "no_such_operation",
        `its endpoint does not support ${x.action}`,
      );
    const missingFeature = findMissingFeature(candidate, facts.features);
    if (missingFeature)
      return exclude(
        excluded,
        candidate,
        "catalog",
        "unsupported",
        "capability",
        `it does not support ${missingFeature}`,
      );
    if (!facts.features.includes("n") || !operationSpec.singleWhenTranslated) return true;
    if (candidate.mode === "translated")
      return exclude(
        excluded,
        candidate,
        "mode",
        "unsupported",
        "n_not_translated",
        "n above 1 is only supported without translation",
      );
    // A watch hook sees the events of one choice only. The other choices would not be observed.
    const watcher = firstApplicable(frontend.hooks.lists.watch, x.model, candidate.provider)?.id;
    if (watcher !== undefined)
      return exclude(
        excluded,
        candidate,
        watcher,
        "unsupported",
        "n_not_watched",
        "n above 1 is not supported while hooks read responses",
      );
    return true;
  });
  if (
    !pinnedTarget &&
    facts.references?.some((one) => one.type === "state" && one.effect === "refers")
  )
    candidates = pinToAccount(candidates, excluded);
  if (facts.requiresTranslation)
    candidates = candidates.map((candidate) => ({ ...candidate, mode: "translated" }));
  if (x.privacy === "off") return candidates;
  return candidates.flatMap((candidate) => {
    const retainedFeature = findRetainedFeature(candidate, facts.features);
    const conflicts = retainedFeature !== undefined && satisfies(x.privacy, candidate.policy);
    if (conflicts)
      exclude(
        excluded,
        candidate,
        "privacy",
        "invalid",
        "zdr_feature_conflict",
        `keeps ${retainedFeature}`,
      );
    return conflicts ? [] : [withFeaturePolicy(candidate, facts.features)];
  });
}

const NOT_ALLOWED_CODE = "client_credential_not_allowed";
const MISSING_CODE = "client_credential_missing";

/** Whether the client's own credential can be sent to the candidate. If not, it is excluded. */
function hasClientCredential(
  candidate: HostCandidate,
  { account, clientCredential }: NonNullable<RouteInputs["admission"]>,
  excluded: ExcludedCandidate[],
): boolean {
  const ids = account?.path.split("/") ?? [];
  const { clientAccounts = [] } = candidate.mounted.credential;
  if (!clientAccounts.some((id) => id === "*" || ids.includes(id)))
    return exclude(
      excluded,
      candidate,
      "credential",
      "forbidden",
      NOT_ALLOWED_CODE,
      "this key's account may not use its own credential",
    );
  if (clientCredential?.fits(candidate.mounted.endpoint)) return true;
  return exclude(
    excluded,
    candidate,
    "credential",
    "unauthenticated",
    MISSING_CODE,
    "the request contains no credential for it. Send your own credential over HTTP in " +
      "Authorization or x-api-key, and the gateway's key in x-tollgate-key",
  );
}

/**
 * Runs the route hooks. A hook may exclude and reorder candidates, but not change them. Each hook
 * receives its own copy of the list, because it may also change the list in place.
 */
function runRouteHooks(
  { x, frontend, gen }: RouteInputs,
  candidates: readonly HostCandidate[],
  excluded: ExcludedCandidate[],
): readonly HostCandidate[] | Promise<readonly HostCandidate[]> {
  const hooks = frontend.hooks.lists.route;
  if (hooks.length === 0) return candidates;
  const shown = candidates.map((candidate) =>
    withCooldown(candidate, gen.targetHealth, clientKey(x)),
  );
  let positions: ReadonlyMap<string, number> | undefined;
  const positionOf = (one: Candidate) =>
    (positions ??= new Map(shown.map((each, i) => [candidateKey(each), i]))).get(candidateKey(one));
  const kept = runReducing(hooks, x.model, shown, ({ id, run }, list) => {
    const copy = [...list];
    const apply = (result: RouteResult): HostCandidate[] => {
      // Most hooks return the list that they received.
      if (result === copy && isSameList(copy, list)) return list;
      const left: HostCandidate[] = [];
      for (const one of result) {
        if ("candidate" in one) excluded.push({ ...one, by: id });
        else {
          const position = positionOf(one);
          if (position !== undefined) left.push(shown[position]!);
        }
      }
      return left;
    };
    const result = run(copy, x);
    return isPromise(result) ? result.then(apply) : apply(result);
  });
  const withoutCooldown = (list: readonly HostCandidate[]) =>
    list === shown ? candidates : list.map((one) => candidates[positionOf(one)!]!);
  return isPromise(kept) ? kept.then(withoutCooldown) : withoutCooldown(kept);
}

const isSameList = (a: readonly HostCandidate[], b: readonly HostCandidate[]): boolean =>
  a.length === b.length && a.every((candidate, i) => candidate === b[i]);

/**
 * Adds the current cooldown for hooks. The candidate itself is cached and stays valid for longer
 * than the cooldown.
 */
function withCooldown(
  candidate: HostCandidate,
  health: Generation["targetHealth"],
  client: string,
): HostCandidate {
  const resting = health.cooldownOf(candidate, client);
  return resting ? { ...candidate, cooldown: resting } : candidate;
}

function createPlan(
  of: RouteInputs,
  left: readonly HostCandidate[],
  resolution: Resolution,
  isAllowed: IsNameAllowed,
  excluded: ExcludedCandidate[],
): RoutePlan {
  const { x, gen } = of;
  const { targetHealth: health } = gen;
  const list =
    x.privacy === "off"
      ? left
      : left.filter(
          (c) =>
            (satisfies(x.privacy, c.policy) && !health.isDistrusted(c)) ||
            exclude(
              excluded,
              c,
              "privacy",
              "privacy",
              "zdr_unavailable",
              c.policy.reasons.join(", ") || "no recent attestation of zero data retention",
            ),
        );
  const chosen = chooseEndpoints(list, of);
  const { failoverOn } = resolution;
  if (chosen.length === 0) throwNoCandidates(of, excluded, isAllowed);
  const others = list.length === chosen.length ? [] : list.filter((c) => !chosen.includes(c));
  if (chosen.length === 1)
    return { candidates: chosen, otherEndpoints: others, failoverOn, resolution, excluded };
  const client = clientKey(x);
  const { candidates, rested: coolingDown } = health.inOrder(chosen, client);
  if (coolingDown.length === 0)
    return { candidates, otherEndpoints: others, failoverOn, resolution, excluded };
  of.routing.coolingDown = coolingDown.flatMap((candidate) => {
    const why = health.cooldownOf(candidate, client)?.reason;
    return why ? [{ candidate, reason: why }] : [];
  });
  return { candidates, otherEndpoints: others, failoverOn, resolution, excluded };
}

const candidateKey = ({ id, credential, protocol }: Candidate): string =>
  `${id}\n${credential}\n${protocol}`;

/**
 * Features whose absence excludes no model: the host creates the stream, and codecs omit reasoning
 * options.
 */
const NEVER_EXCLUDING_FEATURES: ReadonlySet<Feature> = new Set(["stream", "reasoning"]);

/**
 * Whether an endpoint has this operation. A token count can always be estimated, and a native
 * endpoint rejects unsupported operations itself.
 */
function supportsOperation(
  { mounted: { endpoint } }: HostCandidate,
  { actionType, action }: Exchange,
): boolean {
  const { transport, protocol } = endpoint;
  return (
    actionType === "count" ||
    !transport ||
    findOperationPath(action, transport.definition, protocol!) !== undefined
  );
}

/**
 * Returns a requested feature that the model is known to lack. If support is unknown, the feature
 * is forwarded.
 */
function findMissingFeature(
  candidate: HostCandidate,
  features: readonly Feature[],
): Feature | undefined {
  const can = candidate.info.can;
  const here = candidate.mounted.endpoint.definition.can;
  if (!can && !here) return undefined;
  return features.find(
    (f) => !NEVER_EXCLUDING_FEATURES.has(f) && (can?.[f] ?? here?.[f]) === false,
  );
}

/**
 * Returns the candidate with the data policy for the requested features, because a feature may
 * retain data for longer than the model itself.
 */
function withFeaturePolicy(candidate: HostCandidate, requested: readonly Feature[]): HostCandidate {
  const features = featuresReaching(candidate, requested);
  if (!features.some((f) => isStateful(f, candidate.policy.stateful))) return candidate;
  return {
    ...candidate,
    policy: effectivePolicyOf(candidate.mounted, candidate.info, wallClock(), features),
  };
}

// Chooses the endpoint if a provider has several endpoints for one model.
/** The request that is routed. */
interface RoutedRequest {
  readonly x: Exchange;
  /** The request after the rewrite hooks. If unset, the client's own request. */
  readonly rewrittenRequest?: ModelRequest | undefined;
  /** Set if nothing is sent and the request has no content. */
  readonly hypothetical?: object;
}

/**
 * Chooses one candidate for each provider, model, and credential: the first endpoint whose protocol
 * accepts all stop sequences of the request. Stop sequences are emulated only if no endpoint
 * accepts them all.
 */
function chooseEndpoints(list: readonly HostCandidate[], of: RoutedRequest): HostCandidate[] {
  if (list.length === 1) return [list[0]!];
  const chosen = new Map<string, HostCandidate>();
  let stops: number | undefined;
  for (const one of list) {
    const key = `${one.id}\n${one.credential}`;
    const before = chosen.get(key);
    if (!before) chosen.set(key, one);
    else if (
      maxStopSequences(before) < Infinity &&
      maxStopSequences(before) < (stops ??= countStopSequences(of))
    )
      if (stops <= maxStopSequences(one)) chosen.set(key, one);
  }
  return [...chosen.values()];
}

/** Passthrough mode and native endpoints have no codec that could emulate stop sequences. */
function maxStopSequences({ mode, mounted: { endpoint } }: HostCandidate): number {
  return (
    (mode === "translated" ? endpoint.protocol?.client?.maxStopSequences : undefined) ?? Infinity
  );
}

/**
 * Counts the stop sequences. Called only if the result is needed, because it may be the first
 * function that decodes the request.
 */
function countStopSequences({ x, rewrittenRequest, hypothetical }: RoutedRequest): number {
  if (hypothetical || x.operation !== "chat" || x.actionType !== "generate") return 0;
  return ((rewrittenRequest ?? x.request) as ChatRequest).output.stop?.length ?? 0;
}
