// Compiles hooks into flat lists, once per config generation and frontend. `HOOK_COMBINATIONS`
// defines how several hooks of one type combine.
import type { Call } from "../../plugin/call.ts";
import type { Outgoing } from "../../plugin/outgoing.ts";
import type { Hooks } from "../../plugin/middleware.ts";
import type { DataPolicy } from "../../model/facts.ts";
import type { ModelRequest } from "../../model/request.ts";
import type { RequestHead, Exchange } from "../../plugin/exchange.ts";
import type { Body, Opt } from "../../model/values.ts";
import { matchesPattern } from "../../catalog/pattern.ts";
import { guardAttemptHook } from "./attempt-hook-guard.ts";
import { guardHook, type HookFailurePolicy } from "./hook-guard.ts";
import { guardSyncHook } from "./sync-hook-guard.ts";
import {
  checkChargeResult,
  checkEditResult,
  checkRewriteResult,
  checkRouteResult,
} from "./hook-result-checks.ts";
import { guardWatchHook } from "./watch-hook-guard.ts";

/** A mounted middleware: its hooks, and the scope to which `for:` restricts them. */
export interface MountedMiddleware {
  /** Plugin ID, such as "middleware.guard". */
  readonly id: string;
  readonly hooks: Hooks;
  readonly failurePolicy: HookFailurePolicy;
  readonly sends: "nowhere" | DataPolicy;
  /** Whether the data policy that the middleware declares in `sends` is trusted. */
  readonly isPolicyTrusted: boolean;
  /** Whether clients can get in only with an API key of the store. */
  readonly needsFirstKey: boolean;
  readonly scope:
    | {
        readonly models?: readonly string[] | undefined;
        readonly frontends?: readonly string[] | undefined;
        readonly providers?: readonly string[] | undefined;
      }
    | undefined;
}

export interface CompiledHook<H extends keyof Hooks> {
  readonly id: string;
  /** How the operator configured failures of the hook. The host's own hooks have no policy. */
  readonly failurePolicy?: HookFailurePolicy;
  readonly run: NonNullable<Hooks[H]>;
  appliesTo(model: string | undefined, provider: string | undefined): boolean;
}

export type HookChain = { readonly [H in keyof Required<Hooks>]: readonly CompiledHook<H>[] } & {
  /** Middleware that sends content of requests to other services. */
  readonly contentSenders: readonly MountedMiddleware[];
  /** Event and watch hooks, in the order of gateway.yaml. */
  readonly eventFilters: readonly EventFilter[];
};

/**
 * A hook that receives the events of a response: an event hook, which may change them, or a watch
 * hook, which only reads them.
 */
export type EventFilter =
  | { readonly event: CompiledHook<"event">; readonly watch?: never }
  | { readonly watch: CompiledHook<"watch">; readonly event?: never };

export function compileHookChain(
  middleware: readonly MountedMiddleware[],
  frontend: string,
): HookChain {
  const applicable = middleware.filter((m) => m.scope?.frontends?.includes(frontend) ?? true);
  const compileOne = <H extends keyof Hooks>(m: MountedMiddleware, name: H): CompiledHook<H>[] => {
    const hook = m.hooks[name];
    if (!hook) return [];
    const run = hook.bind(m.hooks) as NonNullable<Hooks[H]>;
    const { id, failurePolicy } = m;
    return [
      {
        id,
        failurePolicy,
        run: guardByKind(failurePolicy, name, run),
        appliesTo: createScopeFilter(m),
      },
    ];
  };
  const list = <H extends keyof Hooks>(name: H): readonly CompiledHook<H>[] =>
    applicable.flatMap((m) => compileOne(m, name));
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
    eventFilters: applicable.flatMap((m): EventFilter[] => [
      ...compileOne(m, "event").map((event) => ({ event })),
      ...compileOne(m, "watch").map((watch) => ({ watch })),
    ]),
    settle: list("settle").toReversed(),
    contentSenders: applicable.filter((m) => m.sends !== "nowhere"),
  };
}

/** Wraps a hook with the failure handling of its type. */
function guardByKind<H extends keyof Hooks>(
  policy: HookFailurePolicy,
  name: H,
  run: NonNullable<Hooks[H]>,
): NonNullable<Hooks[H]> {
  const hooks = { [name]: run } as Hooks;
  const guarded: { readonly [K in keyof Hooks]: Hooks[K] | undefined } = {
    admit:
      hooks.admit && guardHook(policy, name, hooks.admit, { whose: first, busy: isAwaitingBody }),
    edit: hooks.edit && guardEditHook(policy, hooks.edit),
    rewrite:
      hooks.rewrite &&
      guardHook(policy, name, hooks.rewrite, {
        whose: second,
        instead: first<ModelRequest>,
        check: checkRewriteResult,
      }),
    inspect:
      hooks.inspect &&
      guardHook(policy, name, hooks.inspect, { whose: second, instead: () => undefined }),
    route:
      hooks.route &&
      guardHook(policy, name, hooks.route, {
        whose: second,
        instead: first,
        check: checkRouteResult,
      }),
    charge:
      hooks.charge &&
      guardSyncHook(policy, name, hooks.charge, {
        exchangeOf: (call) => call.exchange,
        check: checkChargeResult,
      }),
    prepare:
      hooks.prepare &&
      guardSyncHook(policy, name, hooks.prepare, { exchangeOf: (_out, call) => call.exchange }),
    attempt: hooks.attempt && guardAttemptHook(policy, hooks.attempt),
    watch: hooks.watch && guardWatchHook(policy, hooks.watch),
    settle: hooks.settle && guardHook(policy, name, hooks.settle, { whose: first, raw: true }),
  };
  return guarded[name] ?? run;
}

/** Wraps an edit hook, which takes one argument. */
function guardEditHook(
  of: HookFailurePolicy,
  run: NonNullable<Hooks["edit"]>,
): NonNullable<Hooks["edit"]> {
  const more = { whose: first, instead: () => undefined, check: checkEditResult };
  const edit = guardHook<Exchange, undefined, Opt<Body>>(of, "edit", run, more);
  return (x) => edit(x, undefined);
}

const first = <T>(one: T): T => one;
const second = <T>(_one: unknown, two: T): T => two;
/**
 * Whether the client is still sending the body. A hook that reads the body waits for the client,
 * and that time does not count against the hook.
 */
const isAwaitingBody = (x: RequestHead): boolean =>
  (x as RequestHead & { isAwaitingBody: boolean }).isAwaitingBody;

const appliesToAll = () => true;

/**
 * Returns whether the hook applies to a model and a provider. A model or provider that is not known
 * yet does not restrict the hook.
 */
function createScopeFilter({ scope: only }: MountedMiddleware): CompiledHook<"admit">["appliesTo"] {
  if (!only?.models && !only?.providers) return appliesToAll;
  const { models, providers } = only;
  return (model, provider) =>
    (models === undefined || model === undefined || models.some((p) => matchesPattern(p, model))) &&
    (providers === undefined || provider === undefined || providers.includes(provider));
}

/**
 * Runs the prepare hooks, the last change to a request before it is sent, in passthrough and
 * translated mode alike.
 */
export function runPrepareHooks(chain: HookChain, out: Outgoing, call: Call): void {
  for (const hook of chain.prepare)
    if (hook.appliesTo(call.exchange.model, call.provider)) hook.run(out, call);
}

/** Returns the hook that prevents passthrough for a candidate, if any. */
export function findTranslatingHook(
  chain: HookChain,
  model: string,
  provider: string,
): string | undefined {
  for (const h of chain.rewrite) if (h.appliesTo(model, provider)) return `${h.id} (rewrite)`;
  for (const h of chain.event) if (h.appliesTo(model, provider)) return `${h.id} (event)`;
  return undefined;
}

/** Returns the hook that watches a candidate's responses, if any. */
export const findWatchHook = (
  chain: HookChain,
  model: string,
  provider: string,
): string | undefined => chain.watch.find((hook) => hook.appliesTo(model, provider))?.id;
