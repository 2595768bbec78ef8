// From what a client wrote in `model` to the seats that could serve it, in the order in which they are tried.
// What is found depends on the config and the catalogue alone, so it is worked out once per name and kept. That nothing is
// found is said to each who asks anew: it names others, and only those that they may use.
import type { Catalogue } from "../catalogue/catalogue.ts";
import type { ModelRoute } from "../config/types.ts";
import { fail, type ErrorKind } from "../model/error.ts";
import type { Lane } from "../model/facts.ts";
import type { Kind } from "../model/request.ts";
import type { MountedEndpoint, MountedFrontend, MountedProvider, Seat } from "./generation.ts";
import { closer } from "./hooks.ts";
import { carried, matches } from "./pattern.ts";
import { policyOf } from "./policy.ts";

export interface Resolution {
  readonly seats: readonly Seat[];
  /** After which failures the next seat is tried. */
  readonly on: ReadonlySet<ErrorKind>;
  /** Why a seat is not on the verbatim lane. */
  readonly closed: ReadonlyMap<Seat, string>;
  readonly notes: readonly string[];
  readonly pick: "ordered" | "weighted";
}

export interface Lines {
  readonly providers: ReadonlyMap<string, MountedProvider>;
  readonly unmounted: ReadonlyMap<string, string>;
  readonly models: ReadonlyMap<string, ModelRoute>;
  readonly catalogue: Catalogue;
  /** Where each kind of model is asked for: "/v1/images/generations". */
  readonly doors: ReadonlyMap<Kind, string>;
  readonly now: () => number;
}

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

/** Whether whoever asks may use this name, or this id. */
export type May = (name: string) => boolean;
const ANYBODY: May = () => true;

export class Switchboard {
  readonly #lines: Lines;
  readonly #patterns: readonly ModelRoute[];
  readonly #kept = new Map<MountedFrontend, Map<string, Resolution>>();
  #version = -1;
  #since = 0;

  constructor(lines: Lines) {
    this.#lines = lines;
    this.#patterns = [...lines.models.values()]
      .filter((route) => route.name.includes("*"))
      .toSorted((a, b) => b.name.length - a.name.length);
  }

  resolve(
    frontend: MountedFrontend,
    model: string,
    stream: boolean,
    may: May = ANYBODY,
  ): Resolution {
    const now = this.#lines.now();
    if (this.#version !== this.#lines.catalogue.version || now - this.#since > KEEP_MS) {
      this.#kept.clear();
      this.#version = this.#lines.catalogue.version;
      this.#since = now;
    }
    let mine = this.#kept.get(frontend);
    if (!mine) this.#kept.set(frontend, (mine = new Map()));
    const key = stream ? `${model}\n` : model;
    let found = mine.get(key);
    if (!found) {
      found = this.#work(frontend, model, stream, now, may);
      if (mine.size >= KEEP) mine.clear();
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
    const notes: string[] = [];
    const ids: string[] = [];
    const route = this.#expand(model, ids, notes, 0);
    const seats: Seat[] = [];
    const closed = new Map<Seat, string>();
    const wrongKind: string[] = [];
    for (const id of new Set(ids)) {
      const slash = id.indexOf("/");
      const provider = this.#lines.providers.get(id.slice(0, slash));
      if (!provider) {
        const why = this.#lines.unmounted.get(id.slice(0, slash));
        notes.push(`${id}: ${why ?? "no such provider"}`);
        continue;
      }
      this.#seat(frontend, model, id.slice(slash + 1), provider, stream, now, {
        seats,
        closed,
        wrongKind,
        notes,
      });
    }
    if (seats.length === 0) this.#nobody(frontend, model, wrongKind, notes, may);
    return {
      seats,
      closed,
      notes,
      on: new Set(route?.on ?? DEFAULT_ON),
      pick: route?.pick ?? "ordered",
    };
  }

  /** Exact name, else a mounted provider's own, else the longest pattern; aliases may name aliases. */
  #expand(model: string, ids: string[], notes: string[], depth: number): ModelRoute | undefined {
    if (depth > MAX_ALIASES) return undefined;
    const exact = this.#lines.models.get(model);
    const slash = model.indexOf("/");
    const known = (name: string) =>
      this.#lines.providers.has(name) || this.#lines.unmounted.has(name);
    if (!exact && slash > 0 && known(model.slice(0, slash))) {
      ids.push(model);
      return undefined;
    }
    const route = exact ?? this.#patterns.find((p) => matches(p.name, model));
    if (!route) return undefined;
    const star = carried(route.name, model) ?? "";
    for (const candidate of route.candidates) {
      const id = candidate.replace("*", () => star);
      if (id === model || (!this.#lines.models.has(id) && known(id.split("/", 1)[0]!)))
        ids.push(id);
      else this.#expand(id, ids, notes, depth + 1);
    }
    return route;
  }

  #seat(
    frontend: MountedFrontend,
    asked: string,
    model: string,
    provider: MountedProvider,
    stream: boolean,
    now: number,
    into: { seats: Seat[]; closed: Map<Seat, string>; wrongKind: string[]; notes: string[] },
  ): void {
    const id = `${provider.name}/${model}`;
    const { info, listed } = this.#lines.catalogue.find(provider.name, model);
    const kind = frontend.protocol?.kind ?? "chat";
    if (info.kind !== kind) {
      if (listed || kind === "image") into.wrongKind.push(listed ? id : "");
      return;
    }
    if (kind === "image" && !listed) return;
    const fitting = provider.endpoints.filter(
      (e) => e.kind === kind && serves(e, info.protocols, model),
    );
    const ordered = [
      ...fitting.filter((e) => e.protocol?.id === frontend.protocol?.id),
      ...fitting.filter((e) => e.protocol?.id !== frontend.protocol?.id),
    ];
    const credentials = provider.credentials.filter(
      (c) => c.models?.some((p) => matches(p, model)) ?? true,
    );
    if (fitting.length === 0) into.notes.push(`${id}: no endpoint of ${provider.name} serves it`);
    if (credentials.length === 0)
      into.notes.push(`${id}: no credential of ${provider.name} may use it`);
    for (const credential of credentials)
      for (const endpoint of ordered) {
        const why = closedBy(frontend, endpoint, asked, provider.name, stream);
        const seat: Seat = {
          id,
          provider: provider.name,
          protocol: endpoint.protocol?.id ?? null,
          lane: (why === undefined ? "verbatim" : "translated") satisfies Lane,
          model,
          info,
          credential: credential.name,
          policy: policyOf({ provider, endpoint, credential }, info, now),
          "~": { provider, endpoint, credential },
        };
        into.seats.push(seat);
        if (why !== undefined) into.closed.set(seat, why);
      }
  }

  #nobody(
    frontend: MountedFrontend,
    model: string,
    wrongKind: string[],
    notes: string[],
    may: May,
  ): never {
    const kind = frontend.protocol?.kind ?? "chat";
    const named = may(model);
    const other = wrongKind.find((id) => id !== "" && (named || may(id)));
    if (other !== undefined) {
      const right = this.#lines.doors.get(kind === "chat" ? "image" : "chat");
      return fail(
        "invalid",
        `${other} is ${kind === "chat" ? "an image" : "a chat"} model${right ? `: ask for it at ${right}` : ""}.`,
        { param: "model", code: "wrong_endpoint" },
      );
    }
    const near = this.#lines.catalogue.near(model, kind, may);
    const names = [...this.#lines.models.keys()].filter((n) => !n.includes("*") && may(n));
    const slash = model.indexOf("/");
    const provider = slash > 0 ? model.slice(0, slash) : undefined;
    const advice =
      near.length > 0
        ? ` Near it: ${near.join(", ")}.`
        : names.length > 0
          ? ` Known names: ${names.slice(0, 5).join(", ")}.`
          : "";
    const yaml =
      provider && !this.#lines.providers.has(provider) && !this.#lines.unmounted.has(provider)
        ? ` To add the provider, in gateway.yaml under providers: "${provider}: { use: ${provider}, with: { api_key: … } }".`
        : ` To add the name, in gateway.yaml under models: "${model}: [<provider>/<model>]".`;
    const because = named && notes.length > 0 ? ` (${notes.join("; ")})` : "";
    return fail(
      "not_found",
      `There is no model ${model}${because}.${advice}${kind === "chat" ? yaml : ""}`,
      {
        param: "model",
        code: "model_not_found",
      },
    );
  }
}

export function serves(
  e: MountedEndpoint,
  protocols: readonly string[] | undefined,
  model: string,
): boolean {
  if (e.protocol && protocols) return protocols.includes(e.protocol.id);
  return e.endpoint.serves?.(model) ?? true;
}

/** Nothing, when client's bytes may travel as they are; else the reason in words. */
function closedBy(
  frontend: MountedFrontend,
  endpoint: MountedEndpoint,
  model: string,
  provider: string,
  stream: boolean,
): string | undefined {
  const mine = frontend.protocol?.id;
  if (!endpoint.protocol) return "the endpoint is native";
  if (endpoint.protocol.id !== mine) return `the endpoint speaks ${endpoint.protocol.id}`;
  if (!endpoint.protocol.client?.relay) return `${mine} has no relay`;
  const streams = endpoint.endpoint.streams ?? "asked";
  if ((streams === "always" && !stream) || (streams === "never" && stream))
    return `the endpoint ${streams} streams`;
  return closer(frontend.chain, model, provider);
}
