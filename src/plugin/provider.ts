import type { ModelEvent } from "../model/event.ts";
import type {
  FeatureSupport,
  DataPolicy,
  Facts,
  ModelInfo,
  PolicyException,
} from "../model/facts.ts";
import type { Operation, ModelRequest } from "../model/request.ts";
import type { HeadersIn, HeadersOut, Opt, Sync } from "../model/values.ts";
import type { EndpointBatches } from "./batch.ts";
import type { EndpointBackground } from "./jobs/background.ts";
import type { EndpointVideos } from "./jobs/video.ts";
import type { Call, ProviderClient } from "./call.ts";
import type { Outgoing } from "./outgoing.ts";
import type { Plugin, Setup } from "./plugin.ts";
import type { Path, Protocol } from "./protocol.ts";
import type { Infer, NoOptions, ObjectSchema } from "./schema.ts";

/**
 * Definition of a provider, which connects to one backend and can be mounted several times under
 * `providers:`.
 */
export interface ProviderDef<
  O extends ObjectSchema = NoOptions,
  C extends ObjectSchema = NoOptions,
> extends Plugin<O> {
  /**
   * Schema of one credential. Its fields are set in `with:`. For several credentials, they are set
   * in `with` of each entry of `credentials`.
   */
  credential?: C;
  /** Data policy of the backend. Default: unknown. */
  dataPolicy?: DataPolicy;
  /**
   * Exceptions from `dataPolicy`, by protocol, by model type, by model, and by whether the model is
   * listed.
   */
  dataPolicyExceptions?: readonly PolicyException[];
  /**
   * Metadata of its models. The live model list and the operator's own metadata override it, field
   * by field.
   */
  facts?: Facts;
  /** Creates the provider for one entry under `providers:`. */
  setup: Setup<O, Provider<Infer<C>>>;
}

/**
 * A mounted provider that `setup` returns. `setup` opens no connection. The host calls `checkReady`
 * before the config generation is put in use, and `listModels` in the background.
 */
export interface Provider<C = unknown> {
  /** Endpoints of the provider. For translated requests, earlier endpoints are preferred. */
  endpoints: readonly Endpoint<C>[];
  /**
   * Returns the models that this credential can call. It is called periodically in the primary
   * process, with a deadline. A failure is logged, and the last successful list stays in use.
   */
  listModels?(client: ProviderClient): Promise<readonly ModelInfo[]>;
  /**
   * Checks the provider in the primary process, before a config generation serves requests, within
   * 5 s. A failure is reported as a warning. With `require_ready: true`, a failure rejects the
   * config, and the old generation stays in use.
   */
  checkReady?(client: ProviderClient): Promise<void>;
}

/** One way to call a backend: with a protocol and its codec, or with code of the plugin. */
export type Endpoint<C = unknown> =
  | ProtocolEndpoint<C>
  | { [K in Operation]: NativeEndpoint<C, K> }[Operation]
  | VideoEndpoint<C>;

/**
 * Origins and authentication of an endpoint. They depend only on the options. A request cannot
 * change where the credential is sent.
 */
export interface EndpointConnection<C> {
  /** Base URL of the API. Paths of endpoints are appended. */
  base: string;
  /** More origins that the credential is bound to. */
  origins?: readonly string[];
  /** How the credential is added to a request. */
  auth: Auth<C>;
  /**
   * Headers of every request. In passthrough mode, the client's headers override them, and
   * `prepare` overrides both.
   */
  headers?: HeadersOut;
}

/**
 * How the credential is added to a request: a header with a field of the credential, a function
 * that signs the final bytes, or a scheme whose token expires (`TokenAuth`). The host adds it last,
 * after every hook, so that no other plugin can read it.
 */
export type Auth<C> =
  | "none"
  /** A header with the value of `field`, after `prefix`. */
  | { header: string; prefix?: string; field: keyof C & string; sign?: never; renewToken?: never }
  | SignRequest<C>
  | TokenAuth<C>;

/**
 * Returns the headers that sign a request. The host calls it for every request that it sends, with
 * the final bytes. After `fail("upstream_auth")`, the credential is put in cooldown and the next
 * candidate is tried. Any other error, or a run time of more than 30 s, counts as an `upstream`
 * error.
 */
export type SignRequest<C> = (
  request: SignableRequest,
  credential: C,
) => HeadersOut | Promise<HeadersOut>;

/**
 * Authentication with a token that expires before the credential does, and that the provider may
 * revoke before its expiry.
 */
export interface TokenAuth<C> {
  /**
   * Returns the headers that sign a request, as in `SignRequest`. It fetches a token if there is
   * none, caches it, and renews it before it expires.
   */
  sign: SignRequest<C>;
  /**
   * Called when the provider responds with status 401 or 403. If the response means that the token
   * is no longer valid, fetches a new token, and resolves to true when the next `sign` will use the
   * new token. The host then signs and sends the request again. A second rejection is final. For
   * any other rejection, resolves to false.
   *
   * The host calls it once per token. Other calls that fail with the same token wait for the result
   * and are then sent again with the new token. The retry belongs to the same call, with one
   * reserve and one settle. A request that was rejected with 401 was not accepted, and no byte of a
   * response was sent. A thrown error, or no result within 30 s, ends the waiting calls, as in
   * `sign`.
   */
  renewToken(refusal: AuthRejection, credential: C): boolean | Promise<boolean>;
}

/** A provider's response to a request that it did not authorize. */
export interface AuthRejection {
  /** HTTP status of the response: 401 or 403. */
  readonly status: number;
  /** Headers of the response. */
  readonly headers: HeadersIn;
  /** The first 64 KiB of the response body. */
  readonly body: Buffer;
  /** Aborts when the host no longer waits for a token. */
  readonly signal: AbortSignal;
}

/** A request in its final form, for schemes that sign it. */
export interface SignableRequest {
  /** HTTP method. */
  readonly method: string;
  /** Full URL of the request. */
  readonly url: URL;
  /** Headers of the request, without the credential. */
  readonly headers: HeadersOut;
  /** Bytes of the body; null if there is none. */
  readonly body: Buffer | null;
  /** Aborts when the call is canceled or its time limit has passed. */
  readonly signal: AbortSignal;
}

/** Capabilities of an endpoint, for routing and privacy. */
export interface EndpointCapabilities {
  /**
   * Whether the endpoint serves this model. `ModelInfo.protocols` takes precedence. It must be
   * pure, because it is called whenever a model name is resolved.
   */
  servesModel?(model: string): boolean;
  /**
   * How the endpoint supports streams. `always`: the host collects the stream for a client that
   * requests a complete response. `never`: the host creates the stream. Default: on_request.
   */
  streaming?: "on_request" | "always" | "never";
  /** Features that every model of this endpoint supports or lacks. */
  can?: FeatureSupport;
  /** Data policy of this endpoint, if it differs from the provider's. */
  dataPolicy?: Partial<DataPolicy>;
}

/**
 * An endpoint with a protocol. The host sends the requests and manages connection pool, deadline,
 * abort, backpressure, and credential.
 */
export interface ProtocolEndpoint<C = unknown> extends EndpointConnection<C>, EndpointCapabilities {
  /** Protocol that the endpoint speaks. */
  protocol: Protocol;
  /** Paths by action, if they differ from the protocol's. */
  paths?: { readonly [name: string]: Opt<Path> };
  /**
   * WebSockets by action. A relay socket of a client is connected to the provider's socket for the
   * same action. For any other action, requests of a client's WebSocket are sent over it if the
   * protocol's client half has `createSession`. If the provider does not accept the connection,
   * they are sent over HTTP.
   */
  sockets?: { readonly [action: string]: Opt<EndpointSocket> };
  /** Batches of requests to this endpoint. Default: the endpoint has none. */
  batches?: EndpointBatches;
  /**
   * Background mode of this endpoint. Its protocol is `responses`. Default: the endpoint has none,
   * and the gateway runs background requests itself.
   */
  background?: EndpointBackground;
  /**
   * Body field, header, or both in which this backend accepts a conversation ID. The backend then
   * routes the requests of one conversation to the same prompt cache. With `pick: sticky`, the host
   * sets them to a hash before the hooks of middleware run, and only if they are empty. They are
   * never set under Service-ZDR.
   */
  sessionAffinity?: { field?: Opt<string>; header?: Opt<string> };
  /**
   * Edits an outgoing request. It runs after `prepare` of the protocol and before `prepare` of
   * middleware.
   */
  prepare?(out: Outgoing, call: Call): Sync;
}

/** A WebSocket that a provider serves next to an endpoint, for one action. */
export interface EndpointSocket {
  /** Path and query, appended to the base URL of the endpoint. The scheme becomes `ws` or `wss`. */
  path: Path;
  /** Headers of the handshake, in addition to the headers of the endpoint. */
  headers?: HeadersOut;
  /** Sub-protocols to offer. */
  subprotocols?: readonly string[];
  /** Paths of calls whose audio does not pass through the gateway. Default: no calls. */
  calls?: {
    /** Path of the request that sets up a call. */
    path: string;
    /** Returns the path of the socket that observes a call. */
    observePath(call: string): string;
    /** Returns the path of the request that ends a call. */
    hangUpPath(call: string): string;
  };
}

/**
 * An endpoint without a protocol: the plugin may send several requests, use an SDK, or send
 * nothing. Requests are always translated.
 *
 * `run` is called once per call, after the call was reserved. Requests that it sends pass through
 * the `prepare` hooks. It must not retry, and must stop when `call.signal` aborts. A `fail()` in it
 * ends the call like a rejection by the provider, with `retry-after` from the last unsuccessful
 * response to `call.fetch`. Any other error counts as a failure of the provider.
 */
export interface NativeEndpoint<C = unknown, K extends Operation = Operation>
  extends Partial<EndpointConnection<C>>, EndpointCapabilities {
  /** Model type that the endpoint serves. */
  operation: K;
  /**
   * Yields the events of one response, ending with `finish`. They are read as fast as the client
   * reads.
   */
  run(request: ModelRequest<K>, call: Call, credential: C): AsyncIterable<ModelEvent>;
  /**
   * Returns the number of tokens of the request, without creating a response. If it is missing, the
   * host estimates.
   */
  countTokens?(request: ModelRequest<K>, call: Call, credential: C): Promise<number>;
}

/** An endpoint that generates videos, as jobs. */
export interface VideoEndpoint<C = unknown>
  extends Partial<EndpointConnection<C>>, EndpointCapabilities {
  /** Model type that the endpoint serves. */
  operation: "video";
  /** Starts, polls, and reads videos. */
  videos: EndpointVideos;
}
