// Hooks, compiled once per generation and frontend into flat lists. How several combine is HOOKS' rule for each.
import type { Call, Outgoing } from "../plugin/call.ts";
import type { Hooks } from "../plugin/middleware.ts";
import type { DataPolicy } from "../model/facts.ts";
import { matches } from "./candidates/pattern.ts";

/** A middleware as mounted: its hooks, and where `for:` lets them apply. */
export interface MountedMiddleware {
  /** "middleware.guard" */
  readonly id: string;
  readonly hooks: Hooks;
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
  readonly run: NonNullable<Hooks[H]>;
  applies(model: string | undefined, provider: string | undefined): boolean;
}

export type Chain = { readonly [H in keyof Required<Hooks>]: readonly Hook<H>[] } & {
  /** Those that send what people wrote somewhere. */
  readonly senders: readonly MountedMiddleware[];
};

export function compile(middleware: readonly MountedMiddleware[], frontend: string): Chain {
  const here = middleware.filter((m) => m.for?.frontends?.includes(frontend) ?? true);
  const list = <H extends keyof Hooks>(name: H): readonly Hook<H>[] =>
    here.flatMap((m) => {
      const hook = m.hooks[name];
      return hook
        ? [{ id: m.id, run: hook.bind(m.hooks) as NonNullable<Hooks[H]>, applies: scope(m) }]
        : [];
    });
  return {
    admit: list("admit"),
    rewrite: list("rewrite"),
    route: list("route"),
    charge: list("charge"),
    prepare: list("prepare"),
    attempt: list("attempt"),
    event: list("event"),
    settle: list("settle").toReversed(),
    senders: here.filter((m) => m.sends !== "nowhere"),
  };
}

const everywhere = () => true;

/** What is not known yet does not narrow. */
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
