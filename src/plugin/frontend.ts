import type { Fault } from "../model/error.ts";
import type { Body, HeadersIn, HeadersOut, Json, Opt, QueryIn, Sync } from "../model/values.ts";
import type { RecordedResponse } from "./call.ts";
import type { RequestHead } from "./exchange.ts";
import type { Plugin, Setup } from "./plugin.ts";
import type { Role } from "./role.ts";
import type { ActionType, Protocol, ErrorResponse } from "./protocol.ts";
import type { NoOptions, ObjectSchema } from "./schema.ts";
import type { CallTarget } from "./store/store.ts";

/** A frontend's definition: routes in one client protocol, mounted under `frontends:`. */
export interface FrontendDef<O extends ObjectSchema = NoOptions> extends Plugin<O> {
  /** Creates the frontend for one entry under `frontends:`. */
  setup: Setup<O, Frontend>;
}

/**
 * What a frontend's `setup` returns. The host serves its routes for as long as the generation lives and calls `fault`
 * and `secret` for each request; both are pure and fast. A throw in either is a 500 with a fixed text.
 */
export interface Frontend {
  /** Protocol that clients speak. Routes to models need one, here or of their own. */
  protocol?: Protocol;
  /** Routes of the frontend. */
  routes: readonly Route[];
  /** Writes an error before the headers of a response are sent. `to`: as for a protocol's `fault`. Default: the protocol's. */
  encodeFault?(fault: Fault, x: RequestHead, to: { id: string; status?: number }): ErrorResponse;
  /**
   * The only look at raw credentials: which header counts here, or which word of the query. `fail("unauthenticated")` says
   * which to use. Whatever it makes of the query, the host has taken `key`, `api_key` and `access_token` out of the address
   * that hooks, providers and logs see. Default: Authorization: Bearer.
   */
  extractCredential?(headers: HeadersIn, query: QueryIn): string | undefined;
}

/** Where a route is. Paths are h3's: `:name` is one segment, `**:name` is the rest. */
export interface RouteAddress {
  /** HTTP method, in upper case. */
  method: string;
  /** Path or paths of the route. */
  path: string | readonly string[];
}
/** A frontend's route: to models, or answered by the frontend itself, on the public port unless it says otherwise. */
export type Route = RouteAddress & (PipelineRoute | HandlerRoute<"public">);

/** Goes the whole walk. */
export interface PipelineRoute {
  /** Operation: generate, count, or relay. */
  actionType: ActionType;
  /** Name of the operation, which selects the provider's path. Default: `op`. */
  action?: string;
  /**
   * What is spoken here, where it is not the frontend's: bodies are checked, decoded, answered and refused in it, and it says
   * which kind of model is asked for. Absent: the frontend's own.
   */
  protocol?: Protocol;
  /**
   * More protocols that may be spoken here. `read` chooses one, by `RouteInput.protocol`; it is then called before the body is
   * checked against a schema, because only its answer says against which. What fails until then is said in `protocol`.
   */
  protocols?: readonly Protocol[];
  /** How a body may come. Default: "json". */
  body?: BodyForm;
  /**
   * Where model and stream are; default body.model, body.stream. Called once for each request, after the body has been checked
   * and before a model is looked for. A `fail()` is told to the client; any other throw is a 500.
   */
  readInput?(x: RequestHead, body: Body): RouteInput | Promise<RouteInput>;
}

/**
 * The media types that a route takes: JSON, `multipart/form-data`, or what the client likes. A form is checked as JSON is: UTF-8,
 * no name twice, so many parts at most. Its text parts are strings in the body and its files are `FilePart`s, spans of the bytes
 * that came; `name[]` is a list and `name[member]` an object, as they would be in JSON. To read a number in a text is the
 * protocol's.
 */
export type BodyForm = "json" | "multipart" | "either";

/**
 * What `read` of a walk route found in a request: which model is meant and how it is answered. Routing checks permission,
 * capability and privacy on it afterwards, as on any other model.
 */
export interface RouteInput {
  /** Model name as the client wrote it, or a target to call directly. */
  model: string | Pick<CallTarget, "provider" | "model" | "credential">;
  /** Whether the client requests a streamed response. Default: `stream` of the body. */
  stream?: Opt<boolean>;
  /** Operation, where it is not the route's. */
  actionType?: Opt<ActionType>;
  /** Name of the operation, where it is not the route's. */
  action?: Opt<string>;
  /** What is spoken from here on: one of the route's `protocols`. Another one is a 500. Absent: the route's own. */
  protocol?: Opt<Protocol>;
  /** Top-level fields that stand in for the client's own from here on: survey, decoding and what is sent see these, on both lanes. */
  edits?: Opt<Body>;
  /** Is handed what the client got, once settled: not when it failed, was cut, is over `max` bytes, or while privacy is on. */
  record?: Opt<{ maxBytes: number; onRecorded(got: RecordedResponse): Sync }>;
}

/**
 * A route that its plugin answers itself, and what its client must present. `Usual` is what an absent `listener` means: "public" for a
 * frontend's, "admin" for a middleware's and an observer's.
 */
export type HandlerRoute<Usual extends "public" | "admin" = "public" | "admin"> = RouteHandler &
  (PublicAccess<Usual> | AdminAccess<Usual>);

type ListenerChoice<P extends string, Usual> = P extends Usual ? { listener?: P } : { listener: P };

/**
 * On the port that clients reach, in every process that answers there. Admit hooks run and find out which key it is,
 * unless the route is open.
 */
export type PublicAccess<Usual> = ListenerChoice<"public", Usual> & {
  /** Whether requests without a key are answered. */
  allowUnauthenticated?: true;
  /** Roles belong to the admin listener. */
  role?: never;
};

/**
 * On the admin listener alone, where gateway.yaml has `admin:`, and in the primary process alone, like commands. Admit hooks do
 * not run: the client presents an admin token, whose role must be `role` or more, owner where it is absent. Then
 * `x.identity.id` identifies the token or person (issuer, subject, and role), and `x.identity.name` is a display name that others may
 * share. Observers and `settle` hooks do not hear of it.
 */
export type AdminAccess<Usual> = ListenerChoice<"admin", Usual> & AdminRouteAccess;

/**
 * Of an admin route: the least role, or `open`: answered to any client that reaches the listener, without a token, and then
 * `x.identity` is undefined. That is for what a page consists of before its reader has signed in, and never for what it shows.
 * `accounts`: admins that are limited to an account may use the route too. By default they may not, because what a plugin serves may
 * belong to other accounts.
 */
export type AdminRouteAccess =
  /** Clients with an admin token of at least `role`. Default: `owner`. */
  | { role?: Role; allowUnauthenticated?: never; allowAccountAdmins?: true }
  /** Any client that reaches the listener. */
  | { role?: never; allowUnauthenticated: true; allowAccountAdmins?: never };

/** A served route of a middleware: its hooks and its routes share what `setup` made. On the admin listener unless it says otherwise. */
export type PluginRoute = RouteAddress & HandlerRoute<"admin">;

/** A served route of an observer. What an observer knows is not the clients': it is on the admin listener always. */
export type ObserverRoute = RouteAddress & RouteHandler & AdminAccess<"admin">;

/**
 * How a served route answers. The client is identified first; then, where `body` says in which form, the body is read and checked;
 * then `serve` is called, once. A `fail()` in it is told in words, any other throw is a 500. Without `body` none is read.
 */
export type RouteHandler =
  /** The body is not read. */
  | { body?: undefined; handle(x: RequestHead): RouteResponse | Promise<RouteResponse> }
  /** The body is parsed and checked. */
  | { body: BodyForm; handle(x: RequestHead, body: Body): RouteResponse | Promise<RouteResponse> }
  /** Of any media type, as it came. */
  | { body: "bytes"; handle(x: RequestHead, body: Buffer): RouteResponse | Promise<RouteResponse> };

/**
 * The answer of a served route. JSON is written as JSON; a Buffer goes out as it is, with the content type from `headers`.
 * An async iterable goes out piece by piece: the next one is asked for when the client has room for it, and `return()` is called
 * when the client has gone. One that throws before its first piece is an error in words. Afterwards the connection is cut, so
 * that no client takes half an answer for a whole one. It ends by itself, or when `ctx.signal` says that its generation leaves.
 */
export interface RouteResponse {
  /** HTTP status. */
  status: number;
  /** Body of the response. Default: none. */
  body?: Opt<Json | Buffer | AsyncIterable<string | Uint8Array>>;
  /** Headers of the response. */
  headers?: Opt<HeadersOut>;
}
