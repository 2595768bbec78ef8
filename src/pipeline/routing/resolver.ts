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
import { findTranslationReason, servesModel } from "./passthrough.ts";
import { wildcardText, matchesPattern } from "../../catalog/pattern.ts";
import { effectivePolicyOf } from "../privacy/candidate-policy.ts";
import { candidateIdsIn, computeShares, type NamePart } from "./weights.ts";
import type { NameLookup, IsNameAllowed, Resolution, ResolverInputs } from "./resolution.ts";
import { throwModelNotFound } from "./no-candidates.ts";

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
   * Returns why a name's candidates are not mounted. For the operator only, because it names
   * environment variables.
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
      const of = { asked: model, model: id.slice(slash + 1), share: shares.get(id)! };
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
   * Expands a name. An exact name takes precedence over a mounted provider's own name, and that
   * over the longest pattern. Aliases may refer to aliases.
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
    { asked, model, share }: { asked: string; model: string; share: number },
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
        const why = findTranslationReason(frontend, endpoint, asked, provider.name, stream);
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
