// From what a client wrote in `model` to the candidates that could serve it, in the order in which they are tried.
// What is found depends on the config and the catalogue alone, so it is worked out once per name and kept. That nothing is
// found is said to each client anew: it names others, and only those that this client may use.
import type { ModelRoute } from "../../config/types.ts";
import { BoundedMap } from "../../lib/bounded-map.ts";
import { fail, type ErrorKind } from "../../model/error.ts";
import type { Lane } from "../../model/facts.ts";
import { chatWork } from "../../model/chat-work.ts";
import type { Work } from "../../model/work.ts";
import { choiceOf } from "../choosing/rules.ts";
import type {
  Credential,
  MountedEndpoint,
  MountedFrontend,
  MountedProvider,
  HostCandidate,
} from "../mounted.ts";
import { closedBy, serves } from "./lanes.ts";
import { carried, matches } from "./pattern.ts";
import { policyOf } from "./policy.ts";
import { idsIn, sharesOf, type NamePart } from "./shares.ts";
import type { NameLookup, May, Resolution, ResolverInputs } from "./resolution.ts";
import { unanswered } from "./unanswered.ts";

/** What fails over unless the route says otherwise. */
export const DEFAULT_ON: readonly ErrorKind[] = [
  "overloaded",
  "rate_limited",
  "timeout",
  "upstream",
  "upstream_auth",
  "upstream_quota",
  "unsupported",
];

/** Policies carry dates, so nothing is kept for longer than this. */
const KEEP_MS = 60_000;
const KEEP = 10_000;
const MAX_ALIASES = 16;
const MODEL = /^[!#-~]{1,256}$/;

const ANY_CLIENT: May = () => true;
const workOf = (frontend: MountedFrontend): Work => frontend.protocol?.work ?? chatWork;

export class CandidateResolver {
  readonly #inputs: ResolverInputs;
  readonly #patterns: readonly ModelRoute[];
  readonly #kept = new Map<MountedFrontend, BoundedMap<string, Resolution>>();
  #version = -1;
  #since = 0;

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
    may: May = ANY_CLIENT,
  ): Resolution {
    const now = this.#inputs.now();
    if (this.#version !== this.#inputs.catalogue.version || now - this.#since > KEEP_MS) {
      this.#kept.clear();
      this.#version = this.#inputs.catalogue.version;
      this.#since = now;
    }
    let mine = this.#kept.get(frontend);
    if (!mine) this.#kept.set(frontend, (mine = new BoundedMap(KEEP)));
    const key = stream ? `${model}\n` : model;
    let found = mine.get(key);
    if (!found) {
      found = this.#work(frontend, model, stream, now, may);
      mine.set(key, found);
    }
    return found;
  }

  #work(
    frontend: MountedFrontend,
    model: string,
    stream: boolean,
    now: number,
    may: May,
  ): Resolution {
    if (!MODEL.test(model))
      fail("invalid", "model must be 1 to 256 printable characters without spaces or quotes.", {
        param: "model",
        code: "invalid_model",
      });
    if (model.endsWith("/") && this.#inputs.providers.has(model.slice(0, -1)))
      fail("invalid", `${model} names a provider and no model: write ${model}<model>.`, {
        param: "model",
        code: "invalid_model",
      });
    const found = this.#look(frontend, model, stream, now);
    const { candidates, closed, route, absent, unserved } = found;
    if (candidates.length === 0) {
      const answers = (name: string) =>
        name !== model && this.#look(frontend, name, false, now).candidates.length > 0;
      unanswered({ ...found, inputs: this.#inputs, work: workOf(frontend), model, answers, may });
    }
    return {
      alias: route?.name,
      candidates,
      closed,
      notes: [...absent.map(({ id, why }) => `${id}: ${why}`), ...unserved],
      on: new Set(route?.on ?? DEFAULT_ON),
      pick: route?.pick ?? "ordered",
      hedge: route?.hedge,
      choice: choiceOf(candidates, route?.pick ?? "ordered"),
    };
  }

  /** Why a name's candidates are not there, for the operator alone: it names variables. */
  absent(model: string): readonly string[] {
    const parts: NamePart[] = [];
    this.#expand(model, undefined, parts, 0);
    return this.#absent(idsIn(parts)).map(({ id, why }) => `${id}: ${why}`);
  }

  #absent(ids: readonly string[]): NameLookup["absent"] {
    return ids.flatMap((id) => {
      const provider = id.slice(0, id.indexOf("/"));
      if (this.#inputs.providers.has(provider)) return [];
      const why = this.#inputs.unmounted.get(provider) ?? "no such provider";
      return [{ id, provider, why }];
    });
  }

  #look(frontend: MountedFrontend, model: string, stream: boolean, now: number): NameLookup {
    const parts: NamePart[] = [];
    const route = this.#expand(model, undefined, parts, 0);
    const ids = idsIn(parts);
    const into: NameLookup = {
      route,
      ids,
      absent: this.#absent(ids),
      candidates: [],
      closed: new Map(),
      wrongKind: [],
      unserved: [],
    };
    const shares = sharesOf(parts, (id) => this.#weightOf(id));
    for (const id of ids) {
      const slash = id.indexOf("/");
      const provider = this.#inputs.providers.get(id.slice(0, slash));
      const of = { asked: model, model: id.slice(slash + 1), share: shares.get(id)! };
      if (provider) this.#candidate(frontend, of, provider, stream, now, into);
    }
    return into;
  }

  /** Of its credentials together; undefined: it is not there. */
  #weightOf(id: string): number | undefined {
    const slash = id.indexOf("/");
    const provider = this.#inputs.providers.get(id.slice(0, slash));
    return provider && weightOf(credentialsFor(provider, id.slice(slash + 1)));
  }

  /** Exact name, else a mounted provider's own, else the longest pattern; aliases may name aliases. */
  #expand(
    model: string,
    weight: number | undefined,
    into: NamePart[],
    depth: number,
  ): ModelRoute | undefined {
    if (depth > MAX_ALIASES) return undefined;
    const exact = this.#inputs.models.get(model);
    const slash = model.indexOf("/");
    const known = (name: string) =>
      this.#inputs.providers.has(name) || this.#inputs.unmounted.has(name);
    if (!exact && slash > 0 && known(model.slice(0, slash))) {
      into.push({ id: model, weight });
      return undefined;
    }
    const route = exact ?? this.#patterns.find((p) => matches(p.name, model));
    if (!route) return undefined;
    const star = carried(route.name, model) ?? "";
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

  #candidate(
    frontend: MountedFrontend,
    { asked, model, share }: { asked: string; model: string; share: number },
    provider: MountedProvider,
    stream: boolean,
    now: number,
    into: NameLookup,
  ): void {
    const id = `${provider.name}/${model}`;
    const { info, listed } = this.#inputs.catalogue.find(provider.name, model);
    const { kind, listed: mustBeListed } = workOf(frontend);
    if (info.kind !== kind) {
      if (listed) into.wrongKind.push({ id, kind: info.kind });
      return;
    }
    if (mustBeListed && !listed) return;
    const fitting = provider.endpoints.filter(
      (e) => e.kind === kind && serves(e, info.protocols, model),
    );
    const ordered = [
      ...fitting.filter((e) => e.protocol?.id === frontend.protocol?.id),
      ...fitting.filter((e) => e.protocol?.id !== frontend.protocol?.id),
    ];
    const credentials = credentialsFor(provider, model);
    const all = weightOf(credentials);
    if (fitting.length === 0)
      into.unserved.push(`${id}: no endpoint of ${provider.name} serves it`);
    if (credentials.length === 0)
      into.unserved.push(`${id}: no credential of ${provider.name} may use it`);
    for (const credential of credentials)
      for (const endpoint of ordered) {
        const why = closedBy(frontend, endpoint, asked, provider.name, stream);
        const candidate: HostCandidate = {
          id,
          provider: provider.name,
          protocol: endpoint.protocol?.id ?? null,
          lane: (why === undefined ? "verbatim" : "translated") satisfies Lane,
          model,
          info,
          credential: credential.name,
          policy: policyOf({ provider, endpoint, credential }, info, now),
          weight: credential.weight,
          resting: undefined,
          "~": {
            provider,
            endpoint,
            credential,
            share: all > 0 ? (share * credential.weight) / all : share / credentials.length,
            target: this.#inputs.targets.target({
              provider: provider.name,
              credential: credential.name,
              model,
              base: baseOf(endpoint),
            }),
          },
        };
        into.candidates.push(candidate);
        if (why !== undefined) into.closed.set(candidate, why);
      }
  }
}

const credentialsFor = ({ credentials }: MountedProvider, model: string): readonly Credential[] =>
  credentials.filter((c) => c.models?.some((p) => matches(p, model)) ?? true);

const weightOf = (credentials: readonly Credential[]): number =>
  credentials.reduce((sum, { weight }) => sum + weight, 0);

const baseOf = ({ wire, endpoint }: MountedEndpoint): string =>
  wire ? wire.origin + wire.prefix : (endpoint.base ?? "");
