import type { ErrorKind, Fault } from "../model/error.ts";
import type { ModelEvent } from "../model/event.ts";
import type { DataPolicy } from "../model/facts.ts";
import type { ModelRequest } from "../model/request.ts";
import type { Body, HeadersOut, Opt, Sync } from "../model/values.ts";
import type {
  Call,
  Candidate,
  SyntheticResponse,
  RecordedResponse,
  UpstreamResponse,
} from "./call.ts";
import type { Outgoing } from "./outgoing.ts";
import type { RequestHead, Exchange } from "./exchange.ts";
import type { Outcome } from "./outcome.ts";
import type { PluginRoute } from "./frontend.ts";
import type { Plugin, Setup } from "./plugin.ts";
import type { NoOptions, ObjectSchema } from "./schema.ts";
import type { Limit } from "./store/limit.ts";

/** How several middlewares combine; their order is gateway.yaml's. All fail closed, except settle. */
export const HOOK_COMBINATIONS = {
  admit: "each",
  edit: "reduce",
  rewrite: "reduce",
  inspect: "each",
  route: "filter",
  charge: "merge",
  prepare: "each",
  attempt: "onion",
  event: "pipe",
  watch: "each",
  settle: "observe",
} as const satisfies { [H in keyof Required<Hooks>]: string };

/** A middleware's definition: a bag of hooks, mounted under `middleware:` in the order in which they run. */
export interface MiddlewareDef<O extends ObjectSchema = NoOptions> extends Plugin<O> {
  /** Where it sends what people wrote. Under ZDR the host refuses what this cannot vouch for. */
  sends: "nowhere" | DataPolicy;
  /** Creates the hooks for one entry under `middleware:`. */
  setup: Setup<O, Hooks & MiddlewareRoutes>;
}

/** What a middleware's `setup` may give beside its hooks. */
export interface MiddlewareRoutes {
  /**
   * Answered by the middleware itself, by what its hooks have left in the same `setup`. With several processes each has its own
   * copy: `ctx.peers` asks the others. A route with `listener: "public"` is asked as `middleware.<name>`, the name that a key's
   * `frontends` may say.
   */
  routes?: readonly PluginRoute[];
}

/**
 * The points at which a middleware takes part. A request meets them from top to bottom. Objects that a hook is handed are
 * read-only.
 *
 * A throw with `fail()` is the hook's word: it ends the request with that fault, in the client's own protocol. Any other throw
 * is a failure: a 500 that names the plugin, and the log has the rest. So is what `ctx.fetch` throws and the hook does not catch. A
 * hook that is waited for and takes longer than `timeout` in gateway.yaml (30 s if absent) has failed too: a 503. What it
 * does after that is not looked at. So has a hook that is not waited for and gives a promise, and one that gives what cannot be
 * used: a 500. One that fails five times in a row is not asked for a while, and what would need it is refused with a 503.
 *
 * With `on_error: continue` in gateway.yaml the request goes on after a failure of `edit`, `rewrite`, `inspect`, `route`, `attempt` or
 * `watch` as if that hook were not there, and the log has a warning. The others fail closed whatever is written: an identity,
 * a limit or the bytes themselves depend on them. A failure of `settle` is always logged and nothing more.
 */
export interface Hooks {
  /**
   * On the head, before a byte of the body is read; one hook after the other, each waited for. `credential` is the client's secret
   * as the frontend found it, and no other hook sees it. It identifies the client, tightens privacy, or refuses. Called for
   * served routes too, unless they are open.
   */
  admit?(x: RequestHead, credential: string | undefined): void | Promise<void>;
  /**
   * Once, when the body has been read: top-level fields that stand in for the client's own from here on, in the protocol that the
   * client speaks (`x.protocol`); `undefined` as a value takes a field away. Later hooks, survey, decoding and what is sent see
   * these, and the lanes stay open: on passthrough mode the rest of the client's bytes leaves as it came. `model` and `stream` are
   * read before it, and not its to give. A body that the protocol's schema refuses is a failure of the hook.
   */
  edit?(x: Exchange): Opt<Body> | Promise<Opt<Body>>;
  /**
   * Once, before routing; each gets what the one before gave, and is waited for. What comes out is what providers are asked.
   * Its presence closes passthrough mode.
   */
  rewrite?(request: ModelRequest, x: Exchange): ModelRequest | Promise<ModelRequest>;
  /**
   * Once, after every `rewrite` and before routing: the request as a provider will be asked, in the form of no protocol. What no
   * protocol knows of the client's words stands in its `rest`. It may refuse, and note what it found with `x.label`. It changes
   * nothing, so passthrough mode stays open. Not called for what is only found again by its id. A request that cannot be read
   * in this form is refused.
   */
  inspect?(request: ModelRequest, x: Exchange): void | Promise<void>;
  /**
   * Fewer, in another order, or excluded with a reason. They come in the order in which they would be tried (`pick` and the
   * weights of credentials have had their say), and what the hook makes of it stays, but for this: those that rest are tried
   * last. A candidate that was not in the list is passed over.
   */
  route?(list: readonly Candidate[], x: Exchange): RouteResult | Promise<RouteResult>;
  /**
   * Before each call is sent, for token counts and by-id operations too. It says which limits the call counts against and how
   * much is held. All of them and the reserve row are one atomic store call; a limit that is full is a 429.
   */
  charge?(call: Call): Charge | undefined;
  /**
   * For each request that leaves, on both lanes and for a native endpoint's own fetches: the last word on it, but for the
   * credential and a trace that the operator hands on. It edits `out`. A field of an account, or of state that is not the client's, is refused after it all the same.
   */
  prepare?(out: Outgoing, call: Call): Sync;
  /**
   * Around each call. `next()` at most once: the host owns retries. It reserves and asks the provider, and its time does not
   * count as the hook's; after it, upstream's head is here and no content has left. A hook that answers without it asks no
   * provider: with what was recorded, or with an answer of its own.
   */
  attempt?(call: Call, next: () => Promise<UpstreamResponse>): Promise<AttemptResult>;
  /**
   * Made once per call. It may pass events on later, or `stop()`; the answer ends when finish comes out, and with a 503 when the
   * provider has ended and finish has not come out within `timeout`. What the provider made is billed in any case.
   * Its presence closes passthrough mode.
   */
  event?(
    call: Call,
    next: (event: ModelEvent) => void,
    stop: (fault: Fault) => void,
  ): (event: ModelEvent) => Sync;
  /**
   * Made once per call. It is shown each event of the answer, in its place among the `event` stages, and changes none of
   * them, so passthrough mode stays open: there the answer is decoded beside the bytes, and bytes pass after the events in
   * them were shown. Of an event that comes in several lines, those before the last may have left. Of several answers at once
   * it could be shown one: `n` above 1 is refused where a watcher looks. What the protocol's codec does not know passes unseen
   * on passthrough mode; an `event` hook closes that lane, and lets nothing pass that it was not handed.
   *
   * Nothing waits for it. `stop()` ends the answer, at once or from a promise of its own: before the first content as a
   * refusal, after it in the protocol's own error, and after the finish not at all. What was made so far is billed. A throw
   * ends the answer in the same way, or with `on_error: continue` ends the watching.
   */
  watch?(call: Call, stop: (fault: Fault) => void): (event: ModelEvent) => Sync;
  /**
   * Exactly once for each request that reached a frontend, refused ones too, when its answer is over and billed; in reverse order,
   * each waited for. It changes nothing any more. A throw is logged.
   */
  settle?(x: RequestHead & Partial<Exchange>, outcome: Outcome): void | Promise<void>;
}

/** What an `attempt` hook answers: what `next()` gave it, a recording, or an answer of its own. */
export type AttemptResult = UpstreamResponse | RecordedResponse | SyntheticResponse;

/**
 * What a `route` hook answers: the candidates that stay, in the order to try them, and those it leaves out with a
 * reason.
 */
export type RouteResult = readonly (Candidate | Exclusion)[];

/** Told to the client when nothing is left, and to `explain`. */
export interface Exclusion {
  /** Candidate that is left out. */
  candidate: Candidate;
  /** Kind of failure if no candidate is left. */
  kind: ErrorKind;
  /** Machine-readable reason for clients and `tollgate explain`. */
  code: string;
  /** Explanation for the client. */
  message: string;
}

/**
 * What one middleware wants held against a call. The host merges all of them, adds the limits of the key and of its
 * accounts, and asks the store once.
 */
export interface Charge {
  /** Limits that the call counts against, besides those of the key and its accounts. */
  limits?: Opt<readonly Limit[]>;
  /** Labels for the ledger rows of the call. */
  labels?: Opt<HeadersOut>;
  /** hard: the host caps the output. */
  hold?: Opt<"hard" | "expected" | "soft">;
}
