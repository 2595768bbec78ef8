import type { Fault } from "../model/error.ts";
import type {
  Body,
  HeadersIn,
  HeadersOut,
  Json,
  JsonObject,
  Opt,
  QueryIn,
  Sync,
} from "../model/values.ts";
import type { RecordedResponse } from "./call.ts";
import type { RequestHead } from "./exchange.ts";
import type { EndedJob, JobKind } from "./store/job-kind.ts";
import type { JobLine, PlannedLine } from "./store/job-lines.ts";
import type { Plugin, Setup } from "./plugin.ts";
import type { Role } from "./role.ts";
import type { ActionType, Protocol, ErrorResponse } from "./protocol.ts";
import type { NoOptions, ObjectSchema } from "./schema.ts";
import type { ContinuedResponse, SocketError, SocketMessage, SocketRequest } from "./socket.ts";
import type { RequestFacts } from "./references.ts";
import type { CallTarget } from "./store/store.ts";

/** Definition of a frontend: routes in one client protocol, mounted under `frontends:`. */
export interface FrontendDef<O extends ObjectSchema = NoOptions> extends Plugin<O> {
  /** Creates the frontend for one entry under `frontends:`. */
  setup: Setup<O, Frontend>;
}

/**
 * A frontend that `setup` returns. The host serves its routes while the config generation is
 * active. It calls `encodeFault` and `extractCredential` for each request, so both must be pure and
 * fast. If either throws, the client receives a 500 with a fixed text.
 */
export interface Frontend {
  /**
   * Protocol that clients speak. Routes to models need a protocol: `protocol` of the frontend or of
   * the route.
   */
  protocol?: Protocol;
  /** Routes of the frontend. */
  routes: readonly Route[];
  /** Paths at which clients open a WebSocket, on the public port. */
  sockets?: readonly SocketRoute[];
  /** Kinds of jobs that the frontend runs. The host lists and cancels them for operators. */
  jobKinds?: readonly JobKind[];
  /**
   * Called before the end of a job of any kind is written, to store what has to be done afterwards,
   * such as the delivery of a webhook. It is called in the process that owns the store, and must be
   * idempotent and fast. The end is written when it resolves. If it rejects, the end is not written,
   * and the engine takes its last step again.
   */
  beforeJobEnds?(job: EndedJob): Promise<void>;
  /**
   * Writes an error before the headers of a response are sent. `to` is the same as in `encodeFault`
   * of a protocol. Default: `encodeFault` of the protocol.
   */
  encodeFault?(fault: Fault, x: RequestHead, to: { id: string; status?: number }): ErrorResponse;
  /**
   * Returns the client's credential from the headers or the query. It is the only function that
   * receives raw credentials. Throw `fail("unauthenticated")` with a message that names the header
   * to use. Whatever this function returns, the host removes `key`, `api_key`, and `access_token`
   * from the URL in hooks, provider requests, and logs. Default: `Authorization: Bearer`.
   */
  extractCredential?(headers: HeadersIn, query: QueryIn): string | undefined;
}

/**
 * Method and path of a route. Path patterns use the syntax of h3: `:name` matches one segment, and
 * `**:name` matches the rest.
 */
export interface RouteAddress {
  /** HTTP method, in upper case. */
  method: string;
  /** Path or paths of the route. */
  path: string | readonly string[];
  /**
   * Maximum time of `handle` in milliseconds, without the time in which the client sends its body.
   * Default: 60,000.
   */
  timeoutMs?: Opt<number>;
}
/**
 * A route of a frontend. Its requests are sent to models, or the frontend handles them itself. By
 * default, a route is served on the public port.
 */
export type Route = RouteAddress & (PipelineRoute | HandlerRoute<"public">);

/** A route whose requests pass through the whole request pipeline. */
export interface PipelineRoute {
  /** Operation: generate, count, or relay. */
  actionType: ActionType;
  /** Name of the operation, which selects the provider's path. Default: `actionType`. */
  action?: string;
  /**
   * Protocol of this route. It is used to validate, decode, and answer bodies and to encode errors,
   * and it determines the model type. Default: the protocol of the frontend.
   */
  protocol?: Protocol;
  /**
   * Other protocols that clients can speak on this route. `readInput` selects one with
   * `RouteInput.protocol`. It is called before the body is checked against a schema, because its
   * result determines the schema. Errors up to that point are written in `protocol`.
   */
  protocols?: readonly Protocol[];
  /** Accepted form of the body. Default: "json". */
  body?: BodyForm;
  /**
   * Returns the model and whether the client requests a stream. Default: `body.model` and
   * `body.stream`. It is called once per request, after the body was checked and before the model
   * is resolved. The client receives the error of a `fail()`. Any other error results in a 500.
   */
  readInput?(x: RequestHead, body: Body): RouteInput | Promise<RouteInput>;
}

/**
 * Media types that a route accepts: JSON, `multipart/form-data`, or either.
 *
 * A form is checked like JSON: UTF-8, no duplicate names, and a maximum number of parts. Its text
 * parts become strings in the body. Its files become `FilePart`s, which are spans of the received
 * bytes. `name[]` becomes a list and `name[member]` an object, as in JSON. The protocol converts
 * texts to numbers.
 */
export type BodyForm = "json" | "multipart" | "either";

/**
 * Result of `readInput` of a route to models: which model is requested and how the response is
 * sent. Routing then checks permissions, capabilities, and privacy as for any other request.
 */
export interface RouteInput {
  /** Model name as the client wrote it, or a target to call directly. */
  model: string | Pick<CallTarget, "provider" | "model" | "credential">;
  /** Whether the client requests a streamed response. Default: `stream` of the body. */
  stream?: Opt<boolean>;
  /** Operation of the request. Default: the operation of the route. */
  actionType?: Opt<ActionType>;
  /** Name of the operation. Default: the name of the route. */
  action?: Opt<string>;
  /**
   * Protocol of the request after this call. It must be one of the route's `protocols`. Any other
   * value results in a 500. Default: the protocol of the route.
   */
  protocol?: Opt<Protocol>;
  /**
   * Top-level fields that replace the client's fields from here on. Request analysis, decoding, and
   * the outgoing request use these values, in passthrough and translated mode. A field that is
   * replaced by undefined is removed.
   */
  edits?: Opt<Body>;
  /**
   * Receives the response that the client got, after the request has been settled. Not called if
   * the request failed, the response was truncated or is larger than `maxBytes`, or privacy is on.
   */
  record?: Opt<{ maxBytes: number; onRecorded(got: RecordedResponse): Sync }>;
  /**
   * Response that the frontend creates itself, for a request that needs no provider. It is sent
   * after the model was resolved, so the client needs permission for the model. The answer of a
   * `relay` is sent without that. Nothing is billed, except subrequests.
   *
   * A function is called when the response is sent. It can send subrequests on behalf of the request.
   * The client receives the error of a `fail()`. Any other error results in a 500.
   */
  answer?: Opt<RouteResponse | (() => Promise<RouteResponse>)>;
  /**
   * Runs the request in the background: it continues when the client has its response or has
   * disconnected. The request has to be streamed. Default: the client receives the response of the
   * model.
   */
  background?: Opt<BackgroundRun>;
  /**
   * The response that the request continues. `edits` contains the complete input. A provider's
   * WebSocket that can continue the response receives only the items that are new.
   */
  continues?: Opt<ContinuedResponse>;
}

/**
 * A request that runs in the background. It passes through the whole request pipeline like any
 * other request, with one ledger row for each call. Only its response goes to the frontend.
 *
 * A shutdown waits for it up to `shutdown.timeout`, and then cancels it.
 */
export interface BackgroundRun {
  /** Cancels the request, as a client that disconnects would. */
  readonly signal: AbortSignal;
  /**
   * Starts the request as a job of the provider, if the first target has a background mode. It is
   * called once, after the request was routed and before anything is reserved or sent. No other
   * member is called after it returned the response for the client. The client receives the error of
   * a `fail()`. If it returns undefined, or is not set, the gateway runs the request.
   */
  startJob?(call: PlannedBackground): Promise<Opt<RouteResponse>>;
  /**
   * Called once, when the first call is reserved and before it is sent. Returns the response for the
   * client. If it throws, nothing is sent to the provider, and the client receives the error. It is
   * not called if the request fails before that. The client then receives that error.
   */
  accept(): Promise<RouteResponse>;
  /** Called for each event of the response, with its data. The provider waits for the promise. */
  onEvent(data: string): Promise<void>;
  /** Called once after `accept`, when the request is settled. */
  onEnd(end: BackgroundEnd): Promise<void>;
}

/** A request that a provider can run in the background. */
export interface PlannedBackground extends PlannedLine {
  /** The request as `settleLine` of `JobLines` expects it. It is not streamed. */
  readonly line: JobLine;
  /** Time whose prices apply, in Unix milliseconds. */
  readonly pricedAt: number;
}

/** How a request in the background ended. */
export interface BackgroundEnd {
  /** Whether the response ended before it was complete, such as after a cancellation. */
  readonly isTruncated: boolean;
  /** The error response that a client would have received in place of events. */
  readonly error: Opt<{ readonly status: number; readonly body: string }>;
}

/**
 * A path at which clients open a WebSocket. The handshake runs `admit` hooks and is rejected with
 * the HTTP error that a request would get.
 */
export type SocketRoute = RequestSocketRoute | RelaySocketRoute;

/** Path and sub-protocols of a socket route. */
export interface SocketAddress {
  /** Path or paths, in the syntax of `RouteAddress.path`. */
  path: string | readonly string[];
  /**
   * Names that a client may offer in `Sec-WebSocket-Protocol`. The host selects the first offered
   * name that is listed here, and never returns any other name. `extractCredential` can read a
   * credential that a browser sends in this header. Plugins and providers do not see the header.
   * Default: no protocol is selected.
   */
  subprotocols?: readonly string[];
}

/**
 * A socket whose messages are ordinary requests of the route. Each request passes through the whole
 * request pipeline: hooks, limits, both forwarding modes, and the ledger. The response is streamed,
 * and each of its events becomes one message.
 *
 * Requests in one lane run one after the other, in the order in which they arrived. Lanes run in
 * parallel.
 */
export interface RequestSocketRoute extends SocketAddress, PipelineRoute {
  /**
   * Creates the session of one connection, after the handshake was admitted. `x` is the handshake.
   */
  openSession(x: RequestHead): SocketSession;
}

/** One connection of a request socket. The host calls its methods in order. */
export interface SocketSession {
  /**
   * Reads a message of the client. Returns undefined for a message that needs no request. The
   * client receives the error of a `fail()` as a message, and the connection stays open.
   */
  readMessage(message: SocketMessage): Opt<SocketRequest>;
  /**
   * Returns the model of a request, as `readInput` of a route does. Default: `readInput` of the
   * route.
   */
  readInput?(x: RequestHead, body: Body, request: SocketRequest): RouteInput | Promise<RouteInput>;
  /**
   * Encodes one event of a response, whose data is the text `data`. Returns undefined for an event
   * that clients of the socket do not receive.
   */
  encodeEvent(data: string, request: SocketRequest): Opt<SocketMessage>;
  /**
   * Encodes an error. `request` is undefined if the error concerns the connection or a message that
   * `readMessage` rejected; `message` is that message.
   */
  encodeError(
    error: SocketError,
    request: Opt<SocketRequest>,
    message?: SocketMessage,
  ): SocketMessage;
  /**
   * Encodes the message that announces the end of the connection. Called before the host closes the
   * connection: `draining` if the gateway shuts down, `expired` if the connection reached its
   * maximum age. Default: the connection is closed without a message.
   */
  encodeNotice?(notice: "draining" | "expired"): Opt<SocketMessage>;
  /** Called once, when the connection is closed. */
  close?(): void;
}

/**
 * A socket that is connected to a provider's socket of the same protocol. The model is fixed when
 * the connection opens. Messages are forwarded unchanged in both directions, unless the meter
 * replaces them. Every response is one call with its own reserve and settle rows.
 */
export interface RelaySocketRoute extends SocketAddress {
  /** Name of the operation, which selects the provider's socket in `ProtocolEndpoint.sockets`. */
  action: string;
  /** Protocol of both sides, with a `socket` half. Default: the protocol of the frontend. */
  protocol?: Protocol;
  /** Whether `readModel` needs the first message of the client. Default: it does not. */
  readsFirstMessage?: true;
  /**
   * Path or paths at which clients set up calls with a POST request, if the protocol has calls.
   * Default: none.
   */
  calls?: string | readonly string[];
  /**
   * Whether clients may present a client secret that this frontend created, in place of their key,
   * for connections and calls. Default: client secrets are rejected with a 401.
   */
  acceptsClientSecrets?: true;
  /**
   * Returns the settings that the client's credential determines, such as those of a client secret.
   * Called once for each connection and call. The meter applies the settings, and rejects messages
   * of the client that exceed them. Default: none.
   */
  readSession?(x: RequestHead): Opt<JsonObject>;
  /**
   * Returns the model. It is called once, after the handshake was admitted. With
   * `readsFirstMessage`, the connection is open and `first` is the client's first message, which is
   * then forwarded like any other.
   */
  readModel(x: RequestHead, first: Opt<SocketMessage>): RelayInput | Promise<RelayInput>;
}

/** Result of `readModel`. */
export interface RelayInput {
  /** Model name as the client wrote it, or a target to connect to. */
  model: string | Pick<CallTarget, "provider" | "model" | "credential">;
  /** Facts that routing and privacy need, such as the feature `audio`. Default: none. */
  facts?: Opt<RequestFacts>;
}

/**
 * A route that its plugin handles itself, with the access that clients need. `Usual` is the default
 * of `listener`: "public" for a frontend, "admin" for a middleware or an observer.
 */
export type HandlerRoute<Usual extends "public" | "admin" = "public" | "admin"> = RouteHandler &
  RouteCookies &
  (PublicAccess<Usual> | AdminAccess<Usual>);

/** Cookies of a route for browsers. */
export interface RouteCookies {
  /**
   * Names of the cookies that the handler can read in `x.cookies`. To set a cookie, return the header
   * `set-cookie`. Names that begin with `tollgate` or `__Host-tollgate` are reserved for the console.
   * Default: none.
   */
  cookies?: readonly string[];
}

type ListenerChoice<P extends string, Usual> = P extends Usual ? { listener?: P } : { listener: P };

/**
 * Access to a route on the public port, in every process that serves it. `admit` hooks run and
 * identify the key, unless the route allows unauthenticated requests.
 */
export type PublicAccess<Usual> = ListenerChoice<"public", Usual> & {
  /** Whether requests without a key are accepted. */
  allowUnauthenticated?: true;
  /**
   * Whether clients may present a client secret that this frontend created, in place of their key.
   * Default: client secrets are rejected with a 401.
   */
  acceptsClientSecrets?: true;
  /** Not available, because roles apply only to the admin listener. */
  role?: never;
};

/**
 * Access to a route on the admin listener. The route is served only if gateway.yaml has `admin:`,
 * and only by the primary process, like commands. `admit` hooks do not run.
 *
 * The client presents an admin token with at least the role `role`, or `owner` if unset.
 * `x.identity.id` then identifies the token or person (issuer, subject, and role).
 * `x.identity.name` is a display name, which is not unique. Observers and `settle` hooks do not
 * receive these requests.
 */
export type AdminAccess<Usual> = ListenerChoice<"admin", Usual> & AdminRouteAccess;

/**
 * Permission for an admin route: clients with a minimum role, or any client that can connect to the
 * listener.
 *
 * With `allowUnauthenticated`, no token is needed and `x.identity` is undefined. Use it for the
 * files of a page that are needed before the user has signed in, and never for the data of the
 * page.
 *
 * With `allowAccountAdmins`, admins that are limited to one account may also use the route. By
 * default they may not, because the plugin may serve data of other accounts.
 */
export type AdminRouteAccess =
  /** Clients with an admin token of at least `role`. Default: `owner`. */
  | { role?: Role; allowUnauthenticated?: never; allowAccountAdmins?: true }
  /** Any client that can connect to the listener. */
  | { role?: never; allowUnauthenticated: true; allowAccountAdmins?: never };

/**
 * A route that a middleware serves. The hooks and routes of a middleware share the state that
 * `setup` created. Default listener: "admin".
 */
export type PluginRoute = RouteAddress & HandlerRoute<"admin">;

/**
 * A route that an observer serves. It is always on the admin listener, because an observer's data
 * is not meant for clients.
 */
export type ObserverRoute = RouteAddress & RouteHandler & RouteCookies & AdminAccess<"admin">;

/**
 * Handler of a route that its plugin serves. The host identifies the client first. If `body` is
 * set, it then reads and checks the body in that form. Then it calls `handle` once. The error of a
 * `fail()` is sent to the client. Any other error results in a 500.
 */
export type RouteHandler =
  /** The body is not read. */
  | { body?: undefined; handle(x: RequestHead): RouteResponse | Promise<RouteResponse> }
  /** The body is parsed and checked. */
  | { body: BodyForm; handle(x: RequestHead, body: Body): RouteResponse | Promise<RouteResponse> }
  /** The body is passed as it was received, with any media type. */
  | { body: "bytes"; handle(x: RequestHead, body: Buffer): RouteResponse | Promise<RouteResponse> }
  /** The parts of a form are passed while they arrive. */
  | FormRouteHandler
  /** The body is passed while it arrives. */
  | StreamRouteHandler;

/**
 * Handler of a JSON body that may be larger than memory and than `bounds.body`. It checks and limits
 * the body itself.
 */
export interface StreamRouteHandler {
  /** Accepts JSON only. */
  body: "stream";
  /** Reads the body and returns the response. Bytes that it does not read are not received. */
  handle(
    x: RequestHead,
    content: AsyncIterable<Uint8Array>,
  ): RouteResponse | Promise<RouteResponse>;
}

/**
 * Handler of a form that may be larger than memory and than `bounds.body`. It limits the size of
 * each part itself.
 */
export interface FormRouteHandler {
  /** Accepts forms only. */
  body: "parts";
  /** Reads the parts and returns the response. Parts that it does not read are not received. */
  handle(x: RequestHead, parts: AsyncIterable<FormPart>): RouteResponse | Promise<RouteResponse>;
}

/** A part of a form that is read while it arrives. */
export interface FormPart {
  /** Name of the field. */
  readonly name: string;
  /** Name of the file. Undefined for a text field. */
  readonly filename: string | undefined;
  /** Content type that the client sent. */
  readonly mime: string | undefined;
  /**
   * Content. When the next part is requested, the rest of it is skipped. The receiver owns each
   * piece.
   */
  readonly content: AsyncIterable<Uint8Array>;
}

/**
 * Response of a route that its plugin serves.
 *
 * An object is sent as JSON. A Buffer is sent unchanged, with the content type from `headers`. An
 * async iterable is sent piece by piece: the next piece is requested when the client can receive
 * it, and `return()` is called if the client has disconnected.
 *
 * If the iterable throws before its first piece, the client receives an error. If it throws later,
 * the connection is closed, so that the client does not mistake a partial response for a complete
 * one. End the stream when `ctx.signal` reports that the generation has been replaced.
 */
export interface RouteResponse {
  /** HTTP status. */
  status: number;
  /** Body of the response. Default: none. */
  body?: Opt<Json | Buffer | AsyncIterable<string | Uint8Array>>;
  /** Headers of the response. */
  headers?: Opt<HeadersOut>;
}
