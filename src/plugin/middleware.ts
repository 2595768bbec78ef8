import type { ErrorKind, Fault } from "../model/error.ts";
import type { ModelEvent } from "../model/event.ts";
import type { DataPolicy } from "../model/facts.ts";
import type { ModelRequest } from "../model/request.ts";
import type { HeadersOut, Opt, Sync } from "../model/values.ts";
import type { Call, Candidate, Outgoing, RecordedAnswer, Reply } from "./call.ts";
import type { Arrival, Exchange, Outcome } from "./exchange.ts";
import type { PluginRoute } from "./frontend.ts";
import type { Plugin, Setup } from "./plugin.ts";
import type { None, ObjectSchema } from "./schema.ts";
import type { Limit } from "./store.ts";

/** How several middlewares combine; their order is gateway.yaml's. All fail closed, except settle. */
export const HOOKS = {
  admit: "each",
  rewrite: "fold",
  route: "filter",
  charge: "merge",
  prepare: "each",
  attempt: "onion",
  event: "pipe",
  settle: "observe",
} as const satisfies { [H in keyof Required<Hooks>]: string };

/** A middleware's definition: a bag of hooks, mounted under `middleware:` in the order in which they run. */
export interface MiddlewareDef<O extends ObjectSchema = None> extends Plugin<O> {
  /** Where it sends what people wrote. Under ZDR the host refuses what this cannot vouch for. */
  sends: "nowhere" | DataPolicy;
  setup: Setup<O, Hooks & MiddlewareRoutes>;
}

/** What a middleware's `setup` may give beside its hooks. */
export interface MiddlewareRoutes {
  /**
   * Answered by the middleware itself, by what its hooks have left in the same `setup`. With several processes each has its own
   * copy: `ctx.peers` asks the others. A route `on: "public"` is asked as `middleware.<name>`, the name that a key's
   * `frontends` may say.
   */
  routes?: readonly PluginRoute[];
}

/**
 * The points at which a middleware takes part. A request meets them from top to bottom. A throw with `fail()` ends the
 * request with that fault in the client's own protocol; any other throw is a 500 with a fixed text, and the log has
 * the rest. All fail closed, except `settle`, whose failure is only logged. Objects that a hook is handed are
 * read-only.
 */
export interface Hooks {
  /** On the head. The secret, out of whatever header, is here and nowhere else. */
  admit?(x: Arrival, credential: string | undefined): void | Promise<void>;
  /** Once, before routing. Its presence closes the verbatim lane. */
  rewrite?(request: ModelRequest, x: Exchange): ModelRequest | Promise<ModelRequest>;
  /** Fewer, in another order, or excluded with a reason. */
  route?(list: readonly Candidate[], x: Exchange): RouteResult | Promise<RouteResult>;
  /** All of them and the reserve row are one atomic store call. */
  charge?(call: Call): Charge | undefined;
  /** Both lanes: the last word on what leaves. */
  prepare?(out: Outgoing, call: Call): Sync;
  /** `next()` at most once: the host owns retries. After it, upstream's head is here and no content has left. */
  attempt?(call: Call, next: () => Promise<Reply>): Promise<Reply | RecordedAnswer>;
  /**
   * Made once per call. It may pass events on later, or `stop()`; the answer ends when finish comes out.
   * Its presence closes the verbatim lane.
   */
  event?(
    call: Call,
    next: (event: ModelEvent) => void,
    stop: (fault: Fault) => void,
  ): (event: ModelEvent) => Sync;
  /** Exactly once, in reverse order, refused requests too. */
  settle?(x: Arrival & Partial<Exchange>, outcome: Outcome): void | Promise<void>;
}

/**
 * What a `route` hook answers: the candidates that stay, in the order to try them, and those it leaves out with a
 * reason.
 */
export type RouteResult = readonly (Candidate | Exclusion)[];

/** Told to the client when nothing is left, and to `explain`. */
export interface Exclusion {
  candidate: Candidate;
  kind: ErrorKind;
  code: string;
  message: string;
}

/**
 * What one middleware wants held against a call. The host merges all of them, adds the limits of the key and of its
 * accounts, and asks the store once.
 */
export interface Charge {
  limits?: Opt<readonly Limit[]>;
  labels?: Opt<HeadersOut>;
  /** hard: the host caps the output. */
  hold?: Opt<"hard" | "expected" | "soft">;
}
