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

/**
 * How the hooks of several middleware are combined, in the order of gateway.yaml. All hooks fail
 * closed by default, except `settle`.
 */
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

/**
 * Definition of a middleware, which is a set of hooks. Middleware is mounted under `middleware:`,
 * in the order in which it runs.
 */
export interface MiddlewareDef<O extends ObjectSchema = NoOptions> extends Plugin<O> {
  /**
   * Destination to which the middleware sends text of prompts and responses. A ZDR request is
   * rejected if this data policy does not guarantee zero data retention.
   */
  sends: "nowhere" | DataPolicy;
  /** Creates the hooks for one entry under `middleware:`. */
  setup: Setup<O, Hooks & MiddlewareExtras>;
}

/** Members that a middleware's `setup` can return in addition to its hooks. */
export interface MiddlewareExtras {
  /**
   * Whether only clients with an API key of the store are admitted. If so, and the store has no
   * key, the gateway creates the first key when it starts. The key is shown once on the terminal or
   * written to the file `first-key` in the state directory.
   */
  needsFirstKey?: boolean;
  /**
   * Routes that the middleware serves itself. They share the state of the hooks that the same
   * `setup` returned. With several processes, each process has its own state. Use
   * `ctx.createPeerQuery` to query the others. In a key's `frontends`, a route with `listener:
   * "public"` is called `middleware.<name>`.
   */
  routes?: readonly PluginRoute[];
}

/**
 * The hooks of a middleware. A request passes them from top to bottom. Objects that a hook receives
 * are read-only.
 *
 * A fault from `fail()` is the hook's decision: it ends the request with that fault, in the
 * client's own protocol. Any other error is a failure: the client receives a 500 that names the
 * plugin, and the details are logged. An uncaught error of `ctx.fetch` is also a failure.
 *
 * An asynchronous hook that takes longer than `timeout` in gateway.yaml (default: 30 s) also fails,
 * with a 503. Its later result is ignored. A synchronous hook that returns a promise fails with a
 * 500, and so does a hook that returns an unusable value.
 *
 * A hook that fails 5 times in a row is not called for some time. Requests that need it are
 * rejected with a 503.
 *
 * With `on_error: continue` in gateway.yaml, a failure of `edit`, `rewrite`, `inspect`, `route`,
 * `attempt`, or `watch` is logged as a warning. The request then continues as if that hook did not
 * exist. The other hooks always fail closed, because an identity, a limit, or the bytes of the
 * response depend on them. A failure of `settle` is only logged.
 */
export interface Hooks {
  /**
   * Called with the request head, before any byte of the body is read. The hooks run one after the
   * other, and each is awaited. `credential` is the client's secret that the frontend extracted. It
   * is passed to no other hook.
   *
   * The hook identifies the client, raises privacy, or rejects the request. It is also called for
   * routes that plugins serve, unless they allow unauthenticated requests.
   *
   * Example: `admit: (x, secret) => x.identify({ id: findClient(secret) })`
   */
  admit?(x: RequestHead, credential: string | undefined): void | Promise<void>;
  /**
   * Called once, after the body has been read. Returns top-level fields that replace the client's
   * fields, in the client's protocol (`x.protocol`). The value `undefined` removes a field.
   *
   * Later hooks, request analysis, decoding, and the outgoing request use these fields. Passthrough
   * mode is still possible: all other bytes of the client are forwarded unchanged. `model` and
   * `stream` are read earlier and cannot be edited. If the edited body does not match the
   * protocol's schema, the hook fails.
   *
   * Example: `edit: () => ({ user: undefined })` removes the field `user`.
   */
  edit?(x: Exchange): Opt<Body> | Promise<Opt<Body>>;
  /**
   * Called once, before routing. Each hook receives the result of the previous one and is awaited.
   * The final result is the request that is sent to providers. A middleware with this hook forces
   * translation.
   *
   * Example: `rewrite: (request) => (request.operation === "chat" ? redact(request) : request)`
   */
  rewrite?(request: ModelRequest, x: Exchange): ModelRequest | Promise<ModelRequest>;
  /**
   * Called once, after all `rewrite` hooks and before routing, with the request in the common form,
   * as it will be sent to a provider. Fields of the client's protocol that the common form does not
   * know are in its `rest`.
   *
   * The hook can reject the request and record findings with `x.addLabel`. It cannot change the
   * request, so passthrough mode is still possible. The hook is not called for requests that refer
   * to stored content only by its ID. A request that cannot be decoded into the common form is
   * rejected.
   *
   * Example: `inspect: (request, x) => x.addLabel("topic", classify(request))`
   */
  inspect?(request: ModelRequest, x: Exchange): void | Promise<void>;
  /**
   * Called with the candidates. Returns a subset of the candidates, in any order, and may exclude
   * candidates with a reason. The candidates are in the order in which they would be tried, after
   * `pick` and the credentials' weights were applied. The returned order is kept, except that
   * candidates in cooldown are tried last. Candidates that were not in the list are ignored.
   *
   * Example: `route: (list) => list.filter(({ provider }) => provider === "eu")`
   */
  route?(list: readonly Candidate[], x: Exchange): RouteResult | Promise<RouteResult>;
  /**
   * Called before each call is sent, including token counts and operations by ID. Returns the
   * limits that the call counts against, and the type of reservation. All limits and the reserve
   * row are one atomic store command. If a limit is exhausted, the call is rejected with a 429.
   *
   * Example: `charge: () => ({ limits: [parseScopedLimit("requests=60/minute", "team:web")] })`
   */
  charge?(call: Call): Charge | undefined;
  /**
   * Called for each outgoing request, in passthrough and translated mode, and for each fetch of a
   * native endpoint. The hook edits `out`. After the hook, only the credential and a trace that the
   * operator forwards are added. The check for account fields and for state that does not belong to
   * the client runs after the hook.
   *
   * Example: `prepare: (out) => out.setHeader("x-team", "web")`
   */
  prepare?(out: Outgoing, call: Call): Sync;
  /**
   * Wraps each call. `next()` reserves budget and calls the provider. Call it at most once, because
   * the host owns retries. The time that it takes does not count toward the hook's timeout. When it
   * resolves, the provider's headers have arrived and no content has been sent to the client.
   *
   * If the hook does not call `next()`, no provider is called. The hook then returns a recorded
   * response or creates a response.
   *
   * Example: `attempt: async (call, next) => cache.get(call) ?? (await next())`
   */
  attempt?(call: Call, next: () => Promise<UpstreamResponse>): Promise<AttemptResult>;
  /**
   * Called once per call, and returns a stage that receives each event of the response. The stage
   * can delay events, or call `stop()`. The response ends when the stage emits `finish`. If the
   * provider has finished and the stage has not emitted `finish` within `timeout`, the response
   * ends with a 503. All content that the provider produced is billed. A middleware with this hook
   * forces translation.
   *
   * Example: `event: (call, next) => (e) => next(e.type === "delta" ? mask(e) : e)`
   */
  event?(
    call: Call,
    next: (event: ModelEvent) => void,
    stop: (fault: Fault) => void,
  ): (event: ModelEvent) => Sync;
  /**
   * Called once per call, and returns a function that receives each event of the response, at its
   * position among the `event` stages. The function cannot change events, so passthrough mode is
   * still possible. In passthrough mode, the response is decoded in parallel, and bytes are sent
   * after the function has received their events. If an event spans several lines, all lines except
   * the last may already have been sent.
   *
   * The function can observe only one choice, so requests with `n` above 1 are rejected if a
   * middleware has this hook. In passthrough mode, the function does not receive content that is
   * unknown to the protocol's codec. An `event` hook disables passthrough mode and receives all
   * content that is sent.
   *
   * Events are not delayed until the function has finished. `stop()` ends the response, either
   * immediately or later from a promise. Before the first token, the client receives a refusal.
   * After it, the client receives the protocol's own error. After the finish event, `stop()` has no
   * effect. Content that was produced before is billed. A thrown error ends the response in the
   * same way. With `on_error: continue`, the response continues without the function.
   *
   * Example: `watch: (call, stop) => (e) => { if (isForbidden(e)) stop(refusal); }`
   */
  watch?(call: Call, stop: (fault: Fault) => void): (event: ModelEvent) => Sync;
  /**
   * Called exactly once for each request that reached a frontend, including rejected requests, when
   * its response has ended and is billed. The hooks run in reverse order, and each is awaited. The
   * hook cannot change the request or response. A thrown error is logged.
   *
   * Example: `settle: (x, outcome) => counter.add(x.frontend, outcome.status)`
   */
  settle?(x: RequestHead & Partial<Exchange>, outcome: Outcome): void | Promise<void>;
}

/**
 * Result of an `attempt` hook: the result of `next()`, a recorded response, or a response that the
 * hook created.
 */
export type AttemptResult = UpstreamResponse | RecordedResponse | SyntheticResponse;

/**
 * Result of a `route` hook: the remaining candidates in the order to try them, and the excluded
 * candidates with a reason.
 */
export type RouteResult = readonly (Candidate | Exclusion)[];

/**
 * A candidate that a `route` hook excluded. The reason is shown to the client if no candidate is
 * left, and by `tollgate explain`.
 */
export interface Exclusion {
  /** Candidate that is omitted. */
  candidate: Candidate;
  /** Kind of failure if no candidate is left. */
  kind: ErrorKind;
  /** Machine-readable reason for clients and `tollgate explain`. */
  code: string;
  /** Explanation for the client. */
  message: string;
}

/**
 * Reservation that one middleware requests for a call. The host merges the charges of all
 * middleware, adds the limits of the key and its accounts, and sends one command to the store.
 */
export interface Charge {
  /** Limits that the call counts against, in addition to the limits of the key and its accounts. */
  limits?: Opt<readonly Limit[]>;
  /** Labels for the ledger rows of the call. */
  labels?: Opt<HeadersOut>;
  /** Type of the reservation. With `hard`, the host caps the output. */
  hold?: Opt<"hard" | "expected" | "soft">;
}
