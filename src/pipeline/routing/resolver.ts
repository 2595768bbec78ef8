// Resolves the client's `model` to the candidates that could serve it, in the order in which they
// are tried. The result depends only on the config and the catalog, so it is calculated once per
// name and cached. If there are no candidates, the error is created for each client, because it
// suggests only names that this client may use.
import type { ModelRoute } from "../../config/gateway-config.ts";
import { BoundedMap } from "../../lib/bounded-map.ts";
import { fail, type ErrorKind } from "../../model/error.ts";
import type { ForwardingMode } from "../../model/facts.ts";
import { chatOperation } from "../../model/operations/chat-operation.ts";
import type { OperationSpec } from "../../model/operations/operation-spec.ts";
import { routingRuleFor } from "./routing-rules.ts";
import type {
  Credential,
  MountedEndpoint,
  MountedFrontend,
  MountedProvider,
  HostCandidate,
} from "../exchange/mounted.ts";
import { wildcardText, matchesPattern, suggestNames } from "../../catalog/model-names.ts";
import { effectivePolicyOf } from "../privacy/candidate-policy.ts";
import type { NameLookup, IsNameAllowed, Resolution, ResolverInputs } from "./resolution.ts";

/** Error kinds that fail over unless the route overrides them. */
export const DEFAULT_FAILOVER_ON: readonly ErrorKind[] = [
  "overloaded",
  "rate_limited",
  "timeout",
  "upstream",
  "upstream_auth",
  "upstream_quota",
  "unsupported",
];

/**
 * Maximum age of cached results, in milliseconds. Data policies contain dates, so results can
 * change.
 */
const CACHE_TTL_MS = 60_000;
const MAX_CACHED_NAMES = 10_000;
const MAX_ALIAS_DEPTH = 16;
const MODEL_NAME = /^[!#-~]{1,256}$/;

const ANY_CLIENT: IsNameAllowed = () => true;
const operationSpecOf = (frontend: MountedFrontend): OperationSpec =>
  frontend.protocol?.operationSpec ?? chatOperation;

export class CandidateResolver {
  readonly #inputs: ResolverInputs;
  readonly #patterns: readonly ModelRoute[];
  readonly #cache = new Map<MountedFrontend, BoundedMap<string, Resolution>>();
  #catalogVersion = -1;
  #cachedSince = 0;

  constructor(inputs: ResolverInputs) {
    this.#inputs = inputs;
    this.#patterns = [...inputs.models.values()]
      .filter((route) => route.name.includes("*"))
      .toSorted((a, b) => b.name.length - a.name.length);
  }

  resolve(
    frontend: MountedFrontend,
    model: string,
    stream: boolean,
    isAllowed: IsNameAllowed = ANY_CLIENT,
  ): Resolution {
    const now = this.#inputs.now();
    if (
      this.#catalogVersion !== this.#inputs.catalog.version ||
      now - this.#cachedSince > CACHE_TTL_MS
    ) {
      this.#cache.clear();
      this.#catalogVersion = this.#inputs.catalog.version;
      this.#cachedSince = now;
    }
    let cache = this.#cache.get(frontend);
    if (!cache) this.#cache.set(frontend, (cache = new BoundedMap(MAX_CACHED_NAMES)));
    const key = stream ? `${model}\n` : model;
    let found = cache.get(key);
    if (!found) {
      found = this.#resolveUncached(frontend, model, stream, now, isAllowed);
      cache.set(key, found);
    }
    return found;
  }

  #resolveUncached(
    frontend: MountedFrontend,
    model: string,
    stream: boolean,
    now: number,
    isAllowed: IsNameAllowed,
  ): Resolution {
    if (!MODEL_NAME.test(model))
      fail("invalid", "model must be 1 to 256 printable characters without spaces or quotes.", {
        param: "model",
        code: "invalid_model",
      });
    if (model.endsWith("/") && this.#inputs.providers.has(model.slice(0, -1)))
      fail("invalid", `${model} names a provider and no model: write ${model}<model>.`, {
        param: "model",
        code: "invalid_model",
      });
    const found = this.#lookUp(frontend, model, stream, now);
    const { candidates, translationReasons, route, unmounted, unserved } = found;
    if (candidates.length === 0) {
      const answers = (name: string) =>
        name !== model && this.#lookUp(frontend, name, false, now).candidates.length > 0;
      throwModelNotFound({
        ...found,
        inputs: this.#inputs,
        operationSpec: operationSpecOf(frontend),
        model,
        hasCandidates: answers,
        isAllowed,
      });
    }
    return {
      alias: route?.name,
      candidates,
      translationReasons,
      notes: [...unmounted.map(({ id, reason }) => `${id}: ${reason}`), ...unserved],
      failoverOn: new Set(route?.fallbackOn ?? DEFAULT_FAILOVER_ON),
      strategy: route?.pick ?? "ordered",
      hedge: route?.hedge,
      routingRule: routingRuleFor(candidates, route?.pick ?? "ordered"),
    };
  }

  /**
   * Returns the reason why a name's candidates are not mounted. For operators only, because it
   * contains names of environment variables.
   */
  explainUnmounted(model: string): readonly string[] {
    const parts: NamePart[] = [];
    this.#expand(model, undefined, parts, 0);
    return this.#findUnmounted(candidateIdsIn(parts)).map(({ id, reason }) => `${id}: ${reason}`);
  }

  #findUnmounted(ids: readonly string[]): NameLookup["unmounted"] {
    return ids.flatMap((id) => {
      const provider = id.slice(0, id.indexOf("/"));
      if (this.#inputs.providers.has(provider)) return [];
      const why = this.#inputs.unmounted.get(provider) ?? "unknown provider";
      return [{ id, provider, reason: why }];
    });
  }

  #lookUp(frontend: MountedFrontend, model: string, stream: boolean, now: number): NameLookup {
    const parts: NamePart[] = [];
    const route = this.#expand(model, undefined, parts, 0);
    const ids = candidateIdsIn(parts);
    const into: NameLookup = {
      route,
      ids,
      unmounted: this.#findUnmounted(ids),
      candidates: [],
      translationReasons: new Map(),
      wrongOperation: [],
      unserved: [],
    };
    const shares = computeShares(parts, (id) => this.#weightOf(id));
    for (const id of ids) {
      const slash = id.indexOf("/");
      const provider = this.#inputs.providers.get(id.slice(0, slash));
      const of = { requestedModel: model, model: id.slice(slash + 1), share: shares.get(id)! };
      if (provider) this.#addCandidates(frontend, of, provider, stream, now, into);
    }
    return into;
  }

  /**
   * Returns the sum of the weights of a candidate's credentials, or undefined if it is not mounted.
   */
  #weightOf(id: string): number | undefined {
    const slash = id.indexOf("/");
    const provider = this.#inputs.providers.get(id.slice(0, slash));
    return provider && weightOf(credentialsFor(provider, id.slice(slash + 1)));
  }

  /**
   * Expands a name. An exact name takes precedence over a mounted provider's own name, which takes
   * precedence over the longest pattern. Aliases may refer to aliases.
   */
  #expand(
    model: string,
    weight: number | undefined,
    into: NamePart[],
    depth: number,
  ): ModelRoute | undefined {
    if (depth > MAX_ALIAS_DEPTH) return undefined;
    const exact = this.#inputs.models.get(model);
    const slash = model.indexOf("/");
    const known = (name: string) =>
      this.#inputs.providers.has(name) || this.#inputs.unmounted.has(name);
    if (!exact && slash > 0 && known(model.slice(0, slash))) {
      into.push({ id: model, weight });
      return undefined;
    }
    const route = exact ?? this.#patterns.find((p) => matchesPattern(p.name, model));
    if (!route) return undefined;
    const star = wildcardText(route.name, model) ?? "";
    const parts: NamePart[] = [];
    for (const candidate of route.candidates) {
      const id = candidate.replace("*", () => star);
      const its = route.weights.get(candidate);
      if (id === model || (!this.#inputs.models.has(id) && known(id.split("/", 1)[0]!)))
        parts.push({ id, weight: its });
      else this.#expand(id, its, parts, depth + 1);
    }
    into.push({ parts, weight });
    return route;
  }

  #addCandidates(
    frontend: MountedFrontend,
    { requestedModel, model, share }: { requestedModel: string; model: string; share: number },
    provider: MountedProvider,
    stream: boolean,
    now: number,
    into: NameLookup,
  ): void {
    const id = `${provider.name}/${model}`;
    const { info, listed } = this.#inputs.catalog.find(provider.name, model);
    const { name, requiresCatalogEntry: mustBeListed } = operationSpecOf(frontend);
    if (info.operation !== name) {
      if (listed) into.wrongOperation.push({ id, operation: info.operation });
      return;
    }
    if (mustBeListed && !listed) return;
    const fitting = provider.endpoints.filter(
      (e) => e.operation === name && servesModel(e, info.protocols, model),
    );
    const ordered = [
      ...fitting.filter((e) => e.protocol?.id === frontend.protocol?.id),
      ...fitting.filter((e) => e.protocol?.id !== frontend.protocol?.id),
    ];
    const credentials = credentialsFor(provider, model);
    const all = weightOf(credentials);
    if (fitting.length === 0)
      into.unserved.push(`${id}: no endpoint of ${provider.name} serves this model`);
    if (credentials.length === 0)
      into.unserved.push(`${id}: no credential of ${provider.name} may use this model`);
    for (const credential of credentials)
      for (const endpoint of ordered) {
        const why = findTranslationReason(
          frontend,
          endpoint,
          requestedModel,
          provider.name,
          stream,
        );
        const candidate: HostCandidate = {
          id,
          provider: provider.name,
          protocol: endpoint.protocol?.id ?? null,
          mode: (why === undefined ? "passthrough" : "translated") satisfies ForwardingMode,
          model,
          info,
          credential: credential.name,
          policy: effectivePolicyOf({ provider, endpoint, credential }, info, now),
          weight: credential.weight,
          cooldown: undefined,
          mounted: {
            provider,
            endpoint,
            credential,
            share: all > 0 ? (share * credential.weight) / all : share / credentials.length,
            target: this.#inputs.targetHealth.target({
              provider: provider.name,
              credential: credential.name,
              model,
              base: baseUrlOf(endpoint),
            }),
          },
        };
        into.candidates.push(candidate);
        if (why !== undefined) into.translationReasons.set(candidate, why);
      }
  }
}

const credentialsFor = ({ credentials }: MountedProvider, model: string): readonly Credential[] =>
  credentials.filter((c) => c.models?.some((p) => matchesPattern(p, model)) ?? true);

const weightOf = (credentials: readonly Credential[]): number =>
  credentials.reduce((sum, { weight }) => sum + weight, 0);

const baseUrlOf = ({ transport, definition }: MountedEndpoint): string =>
  transport ? transport.origin + transport.pathPrefix : (definition.base ?? "");

// Calculates each candidate's share of a name's calls. A candidate's weight is relative to the
// others, and its credentials divide its share by their weights. Without a weight, a candidate has
// the sum of its credentials' weights, and a name has the sum of its candidates' weights.
/** A part of a name: a candidate, or all candidates that another name resolves to. */
export type NamePart = { readonly weight: number | undefined } & (
  | { readonly id: string; readonly parts?: never }
  | { readonly parts: readonly NamePart[]; readonly id?: never }
);

/**
 * Returns the share of each candidate. `credentialWeight`: returns the sum of the weights of a
 * candidate's credentials, or undefined if the candidate is not mounted. The shares add up to 1, or
 * to 0 if there are none.
 */
export function computeShares(
  parts: readonly NamePart[],
  credentialWeight: (id: string) => number | undefined,
): ReadonlyMap<string, number> {
  const shares = new Map<string, number>();
  divideShare(parts, 1, credentialWeight, shares);
  return shares;
}

function divideShare(
  parts: readonly NamePart[],
  share: number,
  credentialWeight: (id: string) => number | undefined,
  into: Map<string, number>,
): void {
  const weights = parts.map((part) => weightOfPart(part, credentialWeight));
  // If all weights are zero, they are ignored.
  const areAllZero = weights.every((size) => size === undefined || size === 0);
  const sizes = weights.map((size) => (size === undefined ? 0 : areAllZero ? 1 : size));
  const all = sum(sizes);
  parts.forEach((part, i) => {
    const its = all > 0 ? (share * sizes[i]!) / all : 0;
    if (part.id === undefined) divideShare(part.parts, its, credentialWeight, into);
    else into.set(part.id, (into.get(part.id) ?? 0) + its);
  });
}

function weightOfPart(
  part: NamePart,
  credentialWeight: (id: string) => number | undefined,
): number | undefined {
  if (part.id !== undefined) {
    const its = credentialWeight(part.id);
    return its === undefined ? undefined : (part.weight ?? its);
  }
  const sizes = part.parts
    .map((each) => weightOfPart(each, credentialWeight))
    .filter((size) => size !== undefined);
  return sizes.length === 0 ? undefined : (part.weight ?? sum(sizes));
}

const sum = (list: readonly number[]): number => list.reduce((a, b) => a + b, 0);
/** Returns the ID of every candidate once, in the order of the config. */
const candidateIdsIn = (parts: readonly NamePart[]): readonly string[] => [
  ...new Set(
    parts.flatMap((part) => (part.id === undefined ? candidateIdsIn(part.parts) : [part.id])),
  ),
];

// Creates the error for a client when a name resolves to no candidate. The error suggests names
// that this key may use and that have candidates. It contains no information that is only for
// operators.
/** Maximum number of suggested names. Similar names come first. */
const MAX_SUGGESTIONS = 3;
const MAX_KNOWN_NAMES = 5;

interface FailedLookup extends NameLookup {
  readonly inputs: ResolverInputs;
  readonly operationSpec: OperationSpec;
  readonly model: string;
  readonly isAllowed: IsNameAllowed;
  /** Whether another name has candidates. */
  hasCandidates(name: string): boolean;
}

function throwModelNotFound(of: FailedLookup): never {
  const { model, operationSpec, isAllowed, inputs } = of;
  const named = isAllowed(model);
  const other = of.wrongOperation.find(({ id }) => named || isAllowed(id));
  if (other !== undefined) {
    const right = inputs.pathsByOperation.get(other.operation);
    const noun =
      inputs.catalog.operations.get(other.operation)?.noun ?? `a model of type ${other.operation}`;
    return fail(
      "invalid",
      `${other.id} is ${noun}${right ? `. Send requests for it to ${right}` : ""}.`,
      {
        param: "model",
        code: "wrong_endpoint",
      },
    );
  }
  const reasons = [
    ...of.unmounted.map(({ id, provider }) => `${id}: ${provider} is not configured`),
    ...of.unserved,
  ];
  const because = named && reasons.length > 0 ? ` (${reasons.join("; ")})` : "";
  const what = of.route && named ? `No provider serves ${model}` : `Model ${model} not found`;
  const line =
    !operationSpec.requiresCatalogEntry && !of.route && of.ids.length === 0
      ? configLineFor(model)
      : "";
  return fail("not_found", `${what}${because}.${similarNamesHint(of)}${line}`, {
    param: "model",
    code: "model_not_found",
  });
}

function similarNamesHint({
  inputs,
  model,
  operationSpec,
  isAllowed,
  hasCandidates,
}: FailedLookup): string {
  const names = [...inputs.models.keys()].filter((name) => !name.includes("*") && isAllowed(name));
  const likely = new Set([
    ...suggestNames(model, names),
    ...inputs.catalog.suggest(model, operationSpec.name, isAllowed),
  ]);
  const nearest = [...likely].filter(hasCandidates);
  if (nearest.length > 0) return ` Similar names: ${nearest.slice(0, MAX_SUGGESTIONS).join(", ")}.`;
  const known = names.slice(0, 2 * MAX_KNOWN_NAMES).filter(hasCandidates);
  return known.length > 0 ? ` Known names: ${known.slice(0, MAX_KNOWN_NAMES).join(", ")}.` : "";
}

/** Returns the line of gateway.yaml that would add this name. */
function configLineFor(model: string): string {
  const slash = model.indexOf("/");
  const provider = model.slice(0, slash);
  return slash > 0
    ? ` To add the provider, add "${provider}: { use: ${provider}, with: { api_key: … } }" under providers in gateway.yaml.`
    : ` To add the name, add "${model}: [<provider>/<model>]" under models in gateway.yaml.`;
}

// Finds the endpoints for a model, and decides whether a client's bytes may be forwarded to them
// unchanged.
export function servesModel(
  e: MountedEndpoint,
  protocols: readonly string[] | undefined,
  model: string,
): boolean {
  if (e.protocol && protocols) return protocols.includes(e.protocol.id);
  return e.definition.servesModel?.(model) ?? true;
}

/**
 * Returns the reason in words why a request must be translated, or undefined if the client's bytes
 * may be forwarded unchanged.
 */
function findTranslationReason(
  frontend: MountedFrontend,
  endpoint: MountedEndpoint,
  model: string,
  provider: string,
  stream: boolean,
): string | undefined {
  const clientProtocol = frontend.protocol?.id;
  if (!endpoint.protocol) return "the endpoint is native";
  if (endpoint.protocol.id !== clientProtocol) return `the endpoint uses ${endpoint.protocol.id}`;
  const { client, socket } = endpoint.protocol;
  if (!client?.createPassthrough && !socket) return `${clientProtocol} does not support relaying`;
  const streams = endpoint.definition.streaming ?? "on_request";
  if ((streams === "always" && !stream) || (streams === "never" && stream))
    return `the endpoint ${streams} streams`;
  return frontend.hooks.translatingHook(model, provider);
}
