// Hooks, compiled once per generation and frontend into flat lists. How several combine is HOOKS' rule for each.
import type { Call } from "../plugin/call.ts";
import type { Outgoing } from "../plugin/outgoing.ts";
import type { Hooks } from "../plugin/middleware.ts";
import type { DataPolicy } from "../model/facts.ts";
import type { ModelRequest } from "../model/request.ts";
import type { Arrival, Exchange } from "../plugin/exchange.ts";
import type { Body, Opt } from "../model/values.ts";
import { matches } from "./candidates/pattern.ts";
import { toleratedAttempt } from "./attempt-failures.ts";
import { tolerated, type Tolerance } from "./hook-failures.ts";
import { prompt } from "./prompt-failures.ts";
import { checkCharge, checkEdit, checkRequest, checkRoute } from "./hook-results.ts";
import { toleratedWatch } from "./watch-failures.ts";

/** A middleware as mounted: its hooks, and where `for:` lets them apply. */
export interface MountedMiddleware {
  /** "middleware.guard" */
  readonly id: string;
  readonly hooks: Hooks;
  readonly tolerance: Tolerance;
  readonly sends: "nowhere" | DataPolicy;
  /** Whether what it says of that is believed. */
  readonly trusted: boolean;
  readonly for:
    | {
        readonly models?: readonly string[] | undefined;
        readonly frontends?: readonly string[] | undefined;
        readonly providers?: readonly string[] | undefined;
      }
    | undefined;
}

export interface Hook<H extends keyof Hooks> {
  readonly id: string;
  /** What the operator wrote of its failures. The host's own hooks have none. */
  readonly tolerance?: Tolerance;
  readonly run: NonNullable<Hooks[H]>;
  applies(model: string | undefined, provider: string | undefined): boolean;
}

export type Chain = { readonly [H in keyof Required<Hooks>]: readonly Hook<H>[] } & {
  /** Those that send what people wrote somewhere. */
  readonly senders: readonly MountedMiddleware[];
  /** Both kinds of stages that events pass, in the order of gateway.yaml. */
  readonly stages: readonly Stage[];
};

/** What an answer's events pass: a stage that may change them, or one that only looks. */
export type Stage =
  | { readonly event: Hook<"event">; readonly watch?: never }
  | { readonly watch: Hook<"watch">; readonly event?: never };

export function compile(middleware: readonly MountedMiddleware[], frontend: string): Chain {
  const here = middleware.filter((m) => m.for?.frontends?.includes(frontend) ?? true);
  const one = <H extends keyof Hooks>(m: MountedMiddleware, name: H): Hook<H>[] => {
    const hook = m.hooks[name];
    if (!hook) return [];
    const run = hook.bind(m.hooks) as NonNullable<Hooks[H]>;
    const { id, tolerance } = m;
    return [{ id, tolerance, run: enduring(tolerance, name, run), applies: scope(m) }];
  };
  const list = <H extends keyof Hooks>(name: H): readonly Hook<H>[] =>
    here.flatMap((m) => one(m, name));
  return {
    admit: list("admit"),
    edit: list("edit"),
    rewrite: list("rewrite"),
    inspect: list("inspect"),
    route: list("route"),
    charge: list("charge"),
    prepare: list("prepare"),
    attempt: list("attempt"),
    event: list("event"),
    watch: list("watch"),
    stages: here.flatMap((m): Stage[] => [
      ...one(m, "event").map((event) => ({ event })),
      ...one(m, "watch").map((watch) => ({ watch })),
    ]),
    settle: list("settle").toReversed(),
    senders: here.filter((m) => m.sends !== "nowhere"),
  };
}

/** A hook, and what the host does when it fails. */
function enduring<H extends keyof Hooks>(
  of: Tolerance,
  name: H,
  run: NonNullable<Hooks[H]>,
): NonNullable<Hooks[H]> {
  const as = { [name]: run } as Hooks;
  const made: { readonly [K in keyof Hooks]: Hooks[K] | undefined } = {
    admit: as.admit && tolerated(of, name, as.admit, { whose: same, busy: uploads }),
    edit: as.edit && editing(of, as.edit),
    rewrite:
      as.rewrite &&
      tolerated(of, name, as.rewrite, {
        whose: second,
        instead: same<ModelRequest>,
        check: checkRequest,
      }),
    inspect:
      as.inspect && tolerated(of, name, as.inspect, { whose: second, instead: () => undefined }),
    route:
      as.route &&
      tolerated(of, name, as.route, { whose: second, instead: same, check: checkRoute }),
    charge:
      as.charge &&
      prompt(of, name, as.charge, { whose: (call) => call.exchange, check: checkCharge }),
    prepare: as.prepare && prompt(of, name, as.prepare, { whose: (_out, call) => call.exchange }),
    attempt: as.attempt && toleratedAttempt(of, as.attempt),
    watch: as.watch && toleratedWatch(of, as.watch),
    settle: as.settle && tolerated(of, name, as.settle, { whose: same, raw: true }),
  };
  return made[name] ?? run;
}

/** Of one thing alone. */
function editing(of: Tolerance, run: NonNullable<Hooks["edit"]>): NonNullable<Hooks["edit"]> {
  const more = { whose: same, instead: () => undefined, check: checkEdit };
  const edit = tolerated<Exchange, undefined, Opt<Body>>(of, "edit", run, more);
  return (x) => edit(x, undefined);
}

const same = <T>(one: T): T => one;
const second = <T>(_one: unknown, two: T): T => two;
/** A hook that reads the body waits for as long as the client takes to send it. */
const uploads = (x: Arrival): boolean => (x as Arrival & { uploading: boolean }).uploading;

const everywhere = () => true;

/** A model or a provider that is not known yet narrows nothing. */
function scope({ for: only }: MountedMiddleware): Hook<"admit">["applies"] {
  if (!only?.models && !only?.providers) return everywhere;
  const { models, providers } = only;
  return (model, provider) =>
    (models === undefined || model === undefined || models.some((p) => matches(p, model))) &&
    (providers === undefined || provider === undefined || providers.includes(provider));
}

/** The last word of the middleware on what leaves, whichever way it leaves. */
export function prepare(chain: Chain, out: Outgoing, call: Call): void {
  for (const hook of chain.prepare)
    if (hook.applies(call.exchange.model, call.provider)) hook.run(out, call);
}

/** Which hook keeps a candidate off the verbatim lane, if any does. */
export function closer(chain: Chain, model: string, provider: string): string | undefined {
  for (const h of chain.rewrite) if (h.applies(model, provider)) return `${h.id} (rewrite)`;
  for (const h of chain.event) if (h.applies(model, provider)) return `${h.id} (event)`;
  return undefined;
}

/** Which hook looks at a candidate's answers, if any does. */
export const watcherOf = (chain: Chain, model: string, provider: string): string | undefined =>
  chain.watch.find((hook) => hook.applies(model, provider))?.id;
