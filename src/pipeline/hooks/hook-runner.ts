// Runs the hooks of the middleware on a frontend. The hooks are compiled into flat lists, once per
// config generation. `HOOK_COMBINATIONS` defines how several hooks of one type combine. This file
// has a runner for each combination: the first applicable hook, a chain in which each hook receives
// the previous result, or hooks nested around a call. Each hook runs under its guard
// (hook-guard.ts). Event and watch hooks run in event-filters.ts.
import { matchesPattern } from "../../catalog/model-names.ts";
import { isPromise } from "../../lib/is-promise.ts";
import { createFault } from "../../model/error.ts";
import type { DataPolicy } from "../../model/facts.ts";
import type { ModelRequest } from "../../model/request.ts";
import type { Body, Opt } from "../../model/values.ts";
import type { Call, UpstreamResponse } from "../../plugin/call.ts";
import type { Exchange } from "../../plugin/exchange.ts";
import type { AttemptResult, Charge, Hooks, RouteResult } from "../../plugin/middleware.ts";
import type { Outgoing } from "../../plugin/outgoing.ts";
import {
  asHooked,
  HookDeadline,
  HookGuard,
  ignoreRejection,
  type HookFailurePolicy,
} from "./hook-guard.ts";
import {
  checkChargeResult,
  checkEditResult,
  checkRewriteResult,
  checkRouteResult,
  classifyAttemptResult,
} from "./hook-results.ts";

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
  /** The host's own hooks have none. */
  readonly guard?: HookGuard;
  readonly run: NonNullable<Hooks[H]>;
  appliesTo(model: string | undefined, provider: string | undefined): boolean;
}

/**
 * A hook that receives the events of a response: an event hook, which may change them, or a watch
 * hook, which only reads them.
 */
export type EventFilter = { readonly guard: HookGuard } & (
  | { readonly type: "event"; readonly hook: CompiledHook<"event"> }
  | { readonly type: "watch"; readonly hook: CompiledHook<"watch"> }
);

type HookLists = {
  readonly [H in keyof Required<Hooks>]: readonly CompiledHook<H>[];
};

/** The hooks of one frontend. */
export class HookRunner {
  readonly lists: HookLists;
  /** Event and watch hooks, in the order of gateway.yaml. */
  readonly eventFilters: readonly EventFilter[];
  /** Middleware that send content of requests to other services. */
  readonly contentSenders: readonly MountedMiddleware[];
  readonly #filtered = new Map<string, HookRunner>();

  constructor(
    lists: HookLists,
    eventFilters: readonly EventFilter[],
    contentSenders: readonly MountedMiddleware[],
  ) {
    this.lists = lists;
    this.eventFilters = eventFilters;
    this.contentSenders = contentSenders;
  }

  /** Returns the same hooks with some of the lists replaced, for hooks of the host itself. */
  with(lists: Partial<HookLists>): HookRunner {
    return new HookRunner({ ...this.lists, ...lists }, this.eventFilters, this.contentSenders);
  }

  /** Returns the hooks of all other plugins. The result is created once per set of plugins. */
  without(pluginIds: readonly string[]): HookRunner {
    const key = pluginIds.join(" ");
    let filtered = this.#filtered.get(key);
    if (filtered) return filtered;
    const isKept = ({ id }: { readonly id: string }) => !pluginIds.includes(id);
    filtered = new HookRunner(
      Object.fromEntries(
        Object.entries(this.lists).map(([name, list]) => [
          name,
          (list as readonly { readonly id: string }[]).filter(isKept),
        ]),
      ) as unknown as HookLists,
      this.eventFilters.filter(({ hook }) => isKept(hook)),
      this.contentSenders.filter(isKept),
    );
    this.#filtered.set(key, filtered);
    return filtered;
  }

  /**
   * Runs the prepare hooks, the last change to a request before it is sent, in passthrough and
   * translated mode alike.
   */
  prepare(out: Outgoing, call: Call): void {
    for (const hook of this.lists.prepare)
      if (hook.appliesTo(call.exchange.model, call.provider)) hook.run(out, call);
  }

  /** Returns the hook that prevents passthrough for a candidate, if any. */
  translatingHook(model: string, provider: string): string | undefined {
    const rewrite = firstApplicable(this.lists.rewrite, model, provider);
    if (rewrite) return `${rewrite.id} (rewrite)`;
    const event = firstApplicable(this.lists.event, model, provider);
    return event && `${event.id} (event)`;
  }
}

/** Returns the first of the hooks that applies to a model and a provider. */
export const firstApplicable = <H extends keyof Hooks>(
  hooks: readonly CompiledHook<H>[],
  model: string,
  provider: string,
): CompiledHook<H> | undefined => hooks.find((hook) => hook.appliesTo(model, provider));

/**
 * Runs the hooks that apply, one after another. Returns a promise only if a hook is asynchronous.
 * The promise is usually the promise that the hook returned. `from`: index of the next hook.
 */
export function runSequentially<H extends keyof Hooks>(
  hooks: readonly CompiledHook<H>[],
  model: string | undefined,
  call: (hook: CompiledHook<H>) => void | Promise<void>,
  from = 0,
): void | Promise<void> {
  for (let at = from; at < hooks.length; at++) {
    const hook = hooks[at]!;
    if (!hook.appliesTo(model, undefined)) continue;
    const waiting = call(hook);
    if (isPromise(waiting))
      return at + 1 < hooks.length
        ? waiting.then(() => runSequentially(hooks, model, call, at + 1))
        : waiting;
  }
}

/**
 * Runs the hooks that apply, each on the result of the previous one. Returns a promise only if a
 * hook waits. `from`: index of the next hook.
 */
export function runReducing<H extends keyof Hooks, T>(
  hooks: readonly CompiledHook<H>[],
  model: string | undefined,
  value: T,
  call: (hook: CompiledHook<H>, value: T) => T | Promise<T>,
  from = 0,
): T | Promise<T> {
  let current = value;
  for (let at = from; at < hooks.length; at++) {
    const hook = hooks[at]!;
    if (!hook.appliesTo(model, undefined)) continue;
    const result = call(hook, current);
    if (isPromise(result))
      return result.then((next) => runReducing(hooks, model, next, call, at + 1));
    current = result;
  }
  return current;
}

/** Compiles the hooks of the middleware that applies to a frontend. */
export function createHookRunner(
  middleware: readonly MountedMiddleware[],
  frontend: string,
): HookRunner {
  const applicable = middleware.filter((m) => m.scope?.frontends?.includes(frontend) ?? true);
  const eventFilters: EventFilter[] = [];
  const lists = {
    admit: [],
    edit: [],
    rewrite: [],
    inspect: [],
    route: [],
    charge: [],
    prepare: [],
    attempt: [],
    event: [],
    watch: [],
    settle: [],
  } as { [H in keyof HookLists]: CompiledHook<H>[] };
  const add = <H extends keyof Hooks>(
    m: MountedMiddleware,
    name: H,
    guard: (guard: HookGuard, run: NonNullable<Hooks[H]>) => NonNullable<Hooks[H]>,
  ): void => {
    const run = m.hooks[name]?.bind(m.hooks) as NonNullable<Hooks[H]> | undefined;
    if (!run) return;
    const own = new HookGuard(m.failurePolicy, name);
    const hook = { id: m.id, guard: own, run: guard(own, run), appliesTo: scopeFilterOf(m) };
    (lists[name] as CompiledHook<H>[]).push(hook);
    if (name === "event" || name === "watch")
      eventFilters.push({ type: name, hook, guard: own } as unknown as EventFilter);
  };
  for (const m of applicable) {
    add(m, "admit", (guard, run) => guard.wrap(run, { exchangeOf: first }));
    add(m, "edit", (guard, run) => {
      const edit = guard.wrap<Exchange, undefined, Opt<Body>>(run, {
        exchangeOf: first,
        fallback: () => undefined,
        check: (edits, x) => checkEditResult(edits, asHooked(x)),
      });
      return (x) => edit(x, undefined);
    });
    add(m, "rewrite", (guard, run) =>
      guard.wrap(run, {
        exchangeOf: second,
        fallback: first<ModelRequest>,
        check: checkRewriteResult,
      }),
    );
    add(m, "inspect", (guard, run) =>
      guard.wrap(run, { exchangeOf: second, fallback: () => undefined }),
    );
    add(m, "route", (guard, run) =>
      guard.wrap(run, {
        exchangeOf: second,
        fallback: first<RouteResult>,
        check: checkRouteResult,
      }),
    );
    add(m, "charge", (guard, run) => {
      const charge = guard.wrap<Call, undefined, Charge | undefined>(run, {
        exchangeOf: (call) => call.exchange,
        check: checkChargeResult,
        isSync: true,
      });
      return (call) => charge(call, undefined) as Charge | undefined;
    });
    add(
      m,
      "prepare",
      (guard, run) =>
        guard.wrap(run, {
          exchangeOf: (_out, call) => call.exchange,
          isSync: true,
        }) as typeof run,
    );
    add(
      m,
      "attempt",
      (guard, run) => (call, next) => new AttemptHookRun(guard, call, next).run(run),
    );
    add(m, "event", (_guard, run) => run);
    add(m, "watch", (_guard, run) => run);
    add(m, "settle", (guard, run) => guard.wrap(run, { exchangeOf: first, rethrows: true }));
  }
  lists.settle.reverse();
  const senders = applicable.filter((m) => m.sends !== "nowhere");
  return new HookRunner(lists, eventFilters, senders);
}

const first = <T>(one: T): T => one;
const second = <T>(_one: unknown, two: T): T => two;
const appliesToAll = () => true;

/**
 * Returns whether the hook applies to a model and a provider. A model or provider that is not known
 * yet does not restrict the hook.
 */
function scopeFilterOf({ scope: only }: MountedMiddleware): CompiledHook<"admit">["appliesTo"] {
  if (!only?.models && !only?.providers) return appliesToAll;
  const { models, providers } = only;
  return (model, provider) =>
    (models === undefined || model === undefined || models.some((p) => matchesPattern(p, model))) &&
    (providers === undefined || provider === undefined || providers.includes(provider));
}

/**
 * One run of an attempt hook. The hook wraps a call, so if it fails, the provider's response may
 * still be forwarded. Its deadline is paused while the provider is called, because calls have
 * separate timeouts.
 */
class AttemptHookRun {
  readonly #guard: HookGuard;
  readonly #call: Call;
  readonly #next: () => Promise<UpstreamResponse>;
  #deadline: HookDeadline | undefined;
  #reply: Promise<UpstreamResponse> | undefined;
  /** The error of the call to the provider. A hook that rethrows it has not failed. */
  #providerError: unknown;
  #isDone = false;

  constructor(guard: HookGuard, call: Call, next: () => Promise<UpstreamResponse>) {
    this.#guard = guard;
    this.#call = call;
    this.#next = next;
  }

  run(run: NonNullable<Hooks["attempt"]>): Promise<AttemptResult> {
    let result: ReturnType<typeof run>;
    try {
      this.#guard.assertAvailable();
      result = run(this.#call, () => this.#callNext());
    } catch (problem) {
      result = Promise.reject(problem as Error);
    }
    // The hook returned the reply unchanged, so its result needs no separate wait.
    if (result !== this.#reply) return this.#wait(result);
    this.#guard.succeed();
    return result;
  }

  #wait(waiting: Promise<AttemptResult> | AttemptResult): Promise<AttemptResult> {
    return new Promise((resolve, reject) => {
      const failed = (problem: unknown) => {
        if (!this.#finish()) return;
        // A hook that lets the provider's error through has worked.
        if (problem === this.#providerError) {
          this.#guard.succeed();
          return reject(problem as Error);
        }
        const error = this.#guard.fail(asHooked(this.#call.exchange), problem);
        if (error !== undefined) return reject(error as Error);
        // The failure is skipped, and the reply that the hook requested is used. If the hook
        // requested no reply, the provider is called.
        resolve(this.#reply ?? this.#next());
      };
      this.#deadline = new HookDeadline(this.#guard, failed);
      if (this.#reply) this.#pauseDeadline(this.#reply);
      else this.#deadline.start();
      Promise.resolve(waiting)
        .then((result) => {
          classifyAttemptResult(result);
          if (!this.#finish()) return;
          this.#guard.succeed();
          resolve(result);
        })
        .catch(failed);
    });
  }

  #callNext(): Promise<UpstreamResponse> {
    // A hook that ignores this promise would otherwise crash the process with an unhandled
    // rejection.
    if (this.#isDone)
      return ignoreRejection(
        Promise.reject(createFault("internal", "next() was called after the hook was canceled.")),
      );
    const reply = this.#next();
    if (this.#reply) return ignoreRejection(reply);
    this.#reply = reply;
    if (this.#deadline) this.#pauseDeadline(reply);
    return reply;
  }

  #pauseDeadline(reply: Promise<UpstreamResponse>): void {
    this.#deadline!.stop();
    const resume = () => {
      if (!this.#isDone) this.#deadline!.start();
    };
    reply.then(resume, (error: unknown) => {
      this.#providerError = error;
      resume();
    });
  }

  /** Returns false if the run has ended before. */
  #finish(): boolean {
    if (this.#isDone) return false;
    this.#isDone = true;
    this.#deadline!.stop();
    return true;
  }
}
