import type { EffectivePolicy, ModelInfo, Privacy } from "../model/facts.ts";
import type { Operation } from "../model/request.ts";
import type { OperationSpec } from "../model/operations/operation-spec.ts";
import type { HeadersIn, HeadersOut, Opt, Json, JsonObject } from "../model/values.ts";
import type { Usage } from "../model/usage.ts";
import type { Candidate, ProviderClient, CallRecord } from "./call.ts";
import type { Identity } from "./identity.ts";
import type { GatewayStats } from "./gateway-stats.ts";
import type { KeyRecord } from "./store/account.ts";
import type { JobCalls } from "./jobs/job-calls.ts";
import type { JobLines } from "./store/job-lines.ts";
import type { JobStore } from "./store/job.ts";
import type { Store } from "./store/store.ts";
import type { RequestHead } from "./exchange.ts";
import type { OpenCall, OpenCallOptions } from "./store/open-call.ts";
import type { SocketMessage } from "./socket.ts";

/**
 * Services that the host provides to one plugin, from its `setup` on. Every resource has an owner.
 * When the config generation has ended, resources are released in reverse order. The context of a
 * store has no `keys`, `catalog`, `ledger`, `jobs`, `jobLines`, and `jobCalls`, because these are
 * built from the store.
 */
export type Context = Readonly<{
  /**
   * Path of the plugin in gateway.yaml, such as "providers.anthropic". Every log line and error of
   * the plugin contains it.
   */
  id: string;
  /** Writes to the operator's log. */
  log: Logger;
  /**
   * Aborts when this config generation is replaced by a reload or the gateway stops. The last
   * requests of the generation may still be active, and `fetch` still works.
   */
  signal: AbortSignal;
  /**
   * Registers a resource to be disposed when the generation ends, and returns it. A resource that
   * is registered after that is disposed immediately.
   */
  own<T extends Disposable | AsyncDisposable>(thing: T): T;
  /**
   * Registers a function that is called once when the generation has ended. If it throws, the error
   * is logged and the other functions still run.
   */
  onDispose(undo: () => unknown): void;
  /**
   * Calls `tick` every `ms` milliseconds until the generation is replaced. The timer keeps no
   * process alive. Two calls never overlap, and errors are logged.
   */
  runEvery(ms: number, tick: (signal: AbortSignal) => unknown): void;
  /**
   * Returns an object that the plugin shares between config generations in one process. The first
   * call creates it. It is disposed of when no generation uses it any more.
   */
  shared<T extends object>(key: string, create: () => T, end?: (thing: T) => unknown): T;
  /**
   * Creates a function that queries the same plugin in the other processes of the gateway, if there
   * are any. It returns the first defined answer. `answer` computes this process's answer to a
   * query of another process. Questions and answers must be plain data. Each query of a plugin has
   * its own name.
   */
  createPeerQuery<Q, A>(
    name: string,
    answer: (question: Q) => A | undefined,
  ): (question: Q) => Promise<A | undefined>;
  /**
   * Sends a request without any credential. A plugin can reach the public internet and origins that
   * the operator configured, even on a private network. The operator names origins in options that
   * the schema marks with `x-origin: true`, or in the definition's `needs`. Redirects are not
   * followed, and the same rule applies to addresses taken from a response. Every failure is a
   * fault.
   *
   * A path such as "/v1/models" is sent to this gateway's own client port, like any client request.
   * The plugin must send an API key that was configured for it. All rules and limits apply, and the
   * ledger contains a row for each call. Before the gateway serves requests, the call rejects.
   */
  fetch: ProviderClient["fetch"];
  /**
   * As `fetch`, for a response that is read while it arrives, such as a stream of events, and for
   * frequent small requests: it costs less, because it creates no streams. Resolves when the headers
   * have arrived, with any status. Read or cancel the body of each response. Rejects, or ends the
   * body with an error, if no byte arrives for `idleMs`. If it rejects with the code
   * `connect_failed`, `tls_failed`, or a code that begins with `address_`, nothing was sent.
   */
  fetchStream(url: string | URL, init: StreamedRequestInit): Promise<StreamedResponse>;
  /**
   * Opens a WebSocket at this gateway's own client port, like any client. The plugin must send an
   * API key that was configured for it. All rules and limits apply, and the ledger contains a row
   * for each response. Resolves when the connection is open. Rejects with the error that a client
   * would get. Before the gateway serves requests, the call rejects.
   *
   *     const socket = await ctx.connect("/v1/realtime?model=openai/gpt-realtime", {
   *       headers: { authorization: `Bearer ${key}` },
   *     });
   *     for await (const message of socket) show(message);
   */
  connect(path: string, options?: OwnSocketOptions): Promise<OwnSocket>;
  /**
   * Sends a request to a model on behalf of a client's request. The subrequest passes through the
   * whole request pipeline, with the key and privacy level of that client. These calls have
   * separate ledger rows, count against the same limits, and are charged to the same account.
   *
   * Every middleware processes the subrequest, except this middleware and the middleware that sent
   * one of its parent requests. Subrequests can be nested up to 4 levels deep. A refusal is thrown
   * as an error. If the hook does not catch it, the hook has failed, and the client's request was
   * not refused. The plugin needs no `sends` for subrequests, because data policies are applied to
   * them separately.
   */
  sendSubrequest(request: Subrequest, of: SubrequestOptions): Promise<SubrequestResult>;
  /**
   * Reserves a call that the plugin makes itself and that is not a call of a model, such as a call
   * of a tool. Resolves when the reserve row is durable. Make the call after that, and settle it
   * with its result. Limits, budgets, and scopes of the key apply. Throws the error for the client
   * if one of them rejects the call.
   *
   *     const call = await ctx.openCall({ parentRequest: x, provider: "mcp:github", model: tool, protocol: "mcp" });
   *     const result = await callTool();
   *     await call.settle({ outcome: "ok", state: "exact" });
   */
  openCall(options: OpenCallOptions): Promise<OpenCall>;
  /**
   * Finds the record of a client's secret key. Results are cached for 60 s by the hash of the
   * secret. Returns undefined if the key is unknown, revoked, or expired. Do not disclose to the
   * client which of these is the case. Returns a promise only if the store has to be queried. The
   * promise rejects as `unavailable` if the store does not respond within 5 s.
   */
  keys: {
    /** Finds the record of a secret key. */
    find(secret: string): KeyRecord | undefined | Promise<KeyRecord | undefined>;
    /**
     * Finds the record of a key by its SHA-256 in hexadecimal, as in `OpenedClientSecret`. A digest
     * proves nothing, so never pass a digest that a client sent.
     */
    findByDigest(digest: string): KeyRecord | undefined | Promise<KeyRecord | undefined>;
    /**
     * Returns the stored record with this digest, even if the key is revoked or has expired. The
     * result is not cached. Read a record before you change it.
     */
    read(digest: string): Promise<KeyRecord | undefined>;
    /**
     * Writes the key of a client that the plugin identifies in its own way, such as a person who
     * signed in. Every process of every gateway on the store uses it within about 1 s.
     *
     * The ID must begin with the plugin's name in gateway.yaml and a colon, such as
     * `claude-gateway:ann`. The `version` of a change must follow the version that was read;
     * otherwise the promise rejects with the code `version_conflict`.
     */
    write(record: KeyRecord): Promise<void>;
  };
  /** Models that the gateway offers. */
  catalog: {
    /**
     * Returns the models that this identity may use: aliases first, then by provider in the order
     * of gateway.yaml.
     */
    list(of: {
      identity?: Opt<Identity>;
      privacy?: Opt<Privacy>;
      operation?: Opt<Operation>;
    }): readonly ListedModel[];
    /** Returns the model with this ID or with another name that the gateway has for it. */
    find(id: string): ListedModel | undefined;
    /** Returns all mounted operations, by name. */
    operations(): ReadonlyMap<string, OperationSpec>;
  };
  /**
   * Returns the cost of this usage at the candidate's current price, in nano-dollars. Request
   * options that change the price, such as a service tier or size, are not included. `null` if the
   * price is unknown or has no entry for one of the units. No budget is reserved.
   */
  quoteCost(candidate: Pick<Candidate, "info" | "policy">, usage: Usage): bigint | null;
  /**
   * Read access to the ledger and to the usage of limits. Reading reserves nothing and writes no
   * row. If the store cannot report limit usage, `readLimits` is missing or returns nothing.
   */
  ledger: Pick<Store, "listEntries" | "sumEntries" | "readLimits">;
  /**
   * Records of jobs, such as files and batches, of all keys. A plugin returns a record to its owner
   * only. Undefined if the store keeps no jobs. In a worker it is always defined, and its methods
   * are then rejected with the code `no_jobs`.
   */
  jobs: Opt<JobStore>;
  /** Runs the lines of jobs and bills them. Undefined if the store keeps no jobs. */
  jobLines: Opt<JobLines>;
  /** Bounds of the config that a plugin applies to bodies that it parses itself. */
  bounds: {
    /** Maximum number of JSON values in one request: `bounds.json_values`. */
    readonly jsonValues: number;
  };
  /** Plans and bills calls that are jobs, such as videos. Undefined if the store keeps no jobs. */
  jobCalls: Opt<JobCalls>;
  /**
   * Returns 32 bytes that all gateways on the store derive for this purpose, even if they restart.
   * Use it to sign IDs and to encrypt files. All plugins get the same bytes for the same purpose.
   */
  deriveSecret(purpose: string): Uint8Array;
  /**
   * Reports an event to all observers of the gateway as a `plugin_event`, such as a difference that
   * operators should know about. `name` consists of lowercase letters, digits, and underscores.
   * `data` contains no prompts, responses, or secrets. Report a state when it changes, and not
   * repeatedly. Throws if the name is not valid, or if `data` is larger than 4 KB as JSON.
   *
   *     ctx.reportEvent("bill_differs", { provider: "openai", differenceUsd: "1.25" });
   */
  reportEvent(name: string, data: JsonObject): void;
  /**
   * Returns the current live stats of all processes of the gateway, for metrics and pages.
   * Concurrent callers share one query. It resolves within about 1 s and rejects only before the
   * gateway serves requests.
   */
  stats(): Promise<GatewayStats>;
  /**
   * Returns an environment variable that the definition's `needs.env` names. Undefined if it is not
   * set. Throws for any other name. Use options for settings of the operator. This function is for
   * variables that a platform sets, such as AWS_REGION.
   */
  env(name: string): string | undefined;
  /**
   * Reads a file that is listed in the definition's `needs.files`, or that is in a folder listed
   * there. The path is absolute or relative to gateway.yaml. The current content is returned, up to
   * 16 MiB. Any other path is rejected, and so is a link that leads out of a listed folder. If the
   * file is missing, the promise rejects with the system's error.
   */
  readFile(path: string): Promise<Buffer>;
  /**
   * Returns the folder in which this plugin can store files. It is under `state_dir`, has mode
   * 0700, and is created at the first call.
   */
  stateDir(): string;
}>;

/** A model as the catalog lists it: the merged model metadata, under the name that clients use. */
export interface ListedModel extends ModelInfo {
  /** Name that a client writes in `model`. */
  id: string;
  /** Name of the provider in gateway.yaml. */
  provider: string;
  /** Data policy that applies to the model. */
  policy: EffectivePolicy;
}

/**
 * Writes one line to the operator's log, with the plugin's ID. Registered secrets are masked. It
 * never throws and never blocks.
 */
export type Logger = Readonly<
  Record<
    "debug" | "info" | "warn" | "error",
    (fields: Readonly<Record<string, unknown>>, message: string) => void
  >
>;

/** A request that a plugin sends through the gateway, at the path of a frontend. */
export interface Subrequest {
  /**
   * Path of a model request, such as "/v1/chat/completions", or of a `POST` route that a frontend
   * handles, such as "/mcp/github". The route reads its body as JSON or bytes.
   */
  path: string;
  /** Body in the protocol of that path. */
  body: JsonObject;
  /** Headers of the request, such as `anthropic-beta`. Credentials are not used. Default: none. */
  headers?: Opt<HeadersIn>;
}

/** Options of a subrequest. */
export interface SubrequestOptions {
  /**
   * The client's request, whose key is charged for the subrequest, and whose limits and privacy
   * apply.
   */
  parentRequest: RequestHead;
  /** Cancels the subrequest. It is also canceled when the client disconnects. */
  signal?: Opt<AbortSignal>;
  /**
   * Called for each event of a streamed response, with its data. The next event is read when the
   * promise resolves. If it rejects, the subrequest is canceled and rejects with the same error. Not
   * available in an isolated plugin. Default: the subrequest may not be streamed.
   *
   *     await ctx.sendSubrequest(
   *       { path: "/v1/responses", body: { ...body, stream: true } },
   *       { parentRequest: x, onEvent: (data) => show(JSON.parse(data)) },
   *     );
   */
  onEvent?: Opt<(data: string) => void | Promise<void>>;
}

/** Result of a subrequest. */
export interface SubrequestResult {
  /**
   * ID of the subrequest. Its ledger rows have the ID of the client's request in the label
   * `parent`.
   */
  id: string;
  /** Response body, as a client would receive it. Null if it was streamed. */
  body: Json;
  /** Records of the subrequest's calls, with usage and cost. */
  calls: readonly CallRecord[];
}

/** A request of `ctx.fetchStream`. */
export interface StreamedRequestInit {
  /** Default: GET. */
  readonly method?: string;
  /** Headers. The default of `content-type` is `application/json` if there is a body. */
  readonly headers?: HeadersOut;
  /** Complete body of the request. */
  readonly body?: string | Buffer;
  /** Cancels the request and its response. */
  readonly signal?: AbortSignal;
  /** Maximum time without data, in milliseconds. */
  readonly idleMs: number;
}

/** Response of `ctx.fetchStream`. Its body can be taken once, by `bytes` or `read`. */
export interface StreamedResponse {
  /** HTTP status. */
  readonly status: number;
  /** Headers by their names in lower case. Values of a repeated header are joined, except cookies. */
  readonly headers: HeadersIn;
  /**
   * Resolves with the whole body. Resolves to undefined if it is larger than `maxBytes`. The rest is
   * then not received.
   */
  bytes(maxBytes: number): Promise<Buffer | undefined>;
  /**
   * Passes each piece of the body to `onPiece` when it arrives. Resolves at the end of the body, and
   * when it is canceled. If `onPiece` throws, the body is canceled and the promise rejects with that
   * error. Count the bytes: a body has no size limit.
   */
  read(onPiece: (piece: Buffer) => void): Promise<void>;
  /** Discards the rest of the body. The connection is kept if the rest is small. */
  cancel(): void;
}

/** Options of `Context.connect`. */
export interface OwnSocketOptions {
  /** Headers of the handshake, with the key. */
  headers?: HeadersOut;
  /** Sub-protocols that are offered. Default: none. */
  subprotocols?: readonly string[];
  /** Ends the connection. */
  signal?: AbortSignal;
}

/** A WebSocket that a plugin has opened. Iterating it returns its messages until it is closed. */
export interface OwnSocket extends AsyncIterable<SocketMessage> {
  /** Resolves when the connection is closed. Never rejects. */
  readonly closed: Promise<ClosedSocket>;
  /** Sends a message. Does nothing if the connection is closed. */
  send(message: SocketMessage): void;
  /** Closes the connection. Default code: 1000. */
  close(code?: number, reason?: string): void;
}

/** How a WebSocket was closed. */
export interface ClosedSocket {
  /** Close code of RFC 6455. 1006: the connection was lost. */
  readonly code: number;
  /** Reason that the other side gave. Empty if it gave none. */
  readonly reason: string;
}
