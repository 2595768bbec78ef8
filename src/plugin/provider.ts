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
import type { Call, ProviderClient } from "./call.ts";
import type { Outgoing } from "./outgoing.ts";
import type { Plugin, Setup } from "./plugin.ts";
import type { Path, Protocol } from "./protocol.ts";
import type { Infer, NoOptions, ObjectSchema } from "./schema.ts";

/** A provider's definition: the way to one backend, mounted as many times as `providers:` names it. */
export interface ProviderDef<
  O extends ObjectSchema = NoOptions,
  C extends ObjectSchema = NoOptions,
> extends Plugin<O> {
  /** What one credential is made of: its fields stand in `with:` (one) or in `credentials: [{ name, with, zdr, weight, models }]` (several). */
  credential?: C;
  /** Absent = unknown. */
  dataPolicy?: DataPolicy;
  /** Where `data` is not all there is to say: by protocol, by kind, by model, listed or not. */
  dataPolicyExceptions?: readonly PolicyException[];
  /** What is known of its models. The live list and the operator's own facts win over it, field by field. */
  facts?: Facts;
  /** Creates the provider for one entry under `providers:`. */
  setup: Setup<O, Provider<Infer<C>>>;
}

/**
 * What a provider's `setup` returns, for one mounted instance. `setup` opens no connection; the host calls `ready`
 * before the generation is swapped in, and `models` in the background.
 */
export interface Provider<C = unknown> {
  /** Preferred first when translating. */
  endpoints: readonly Endpoint<C>[];
  /**
   * What this credential may call. Asked in the primary process, again and again, under a deadline. A failure is in the log and
   * keeps the last good list.
   */
  listModels?(client: ProviderClient): Promise<readonly ModelInfo[]>;
  /**
   * Asked in the primary process before a generation answers, with 5 s. A failure is a warning; where the operator wrote
   * `require_ready: true` it refuses the config, and the old generation goes on.
   */
  checkReady?(client: ProviderClient): Promise<void>;
}

/** One way to ask a backend: in a protocol whose codec exists, or by code of the plugin's own. */
export type Endpoint<C = unknown> =
  | ProtocolEndpoint<C>
  | { [K in Operation]: NativeEndpoint<C, K> }[Operation];

/** Where the credential may go. From options only: nothing in a request changes it. */
export interface EndpointConnection<C> {
  /** Base URL of the API. Paths of endpoints are appended. */
  base: string;
  /** More origins that the credential is bound to. */
  origins?: readonly string[];
  /** How the credential is added to a request. */
  auth: Auth<C>;
  /** passthrough mode's client headers win over them, prepare over both. */
  headers?: HeadersOut;
}

/**
 * How the credential is put on a request. The host does it last, after every hook, so that no plugin sees the value: a header
 * that carries a field of it, a function that signs the final bytes, or a scheme whose token ends (`TokenAuth`).
 */
export type Auth<C> =
  | "none"
  /** A header with the value of `field`, after `prefix`. */
  | { header: string; prefix?: string; field: keyof C & string; sign?: never; renewToken?: never }
  | SignRequest<C>
  | TokenAuth<C>;

/**
 * The headers that sign a request. Called by the host each time that a request is sent, with the bytes as they will leave.
 * `fail("upstream_auth")` in it rests the credential and the next candidate is tried; any other throw is `upstream`, and so is more than 30 s.
 */
export type SignRequest<C> = (
  request: SignableRequest,
  credential: C,
) => HeadersOut | Promise<HeadersOut>;

/** Auth with a token that ends before the credential does, and that the provider may call over before its time. */
export interface TokenAuth<C> {
  /** As `Sign` says. It fetches the token when there is none, keeps it, and fetches another when its time is near. */
  sign: SignRequest<C>;
  /**
   * Called when the provider answers 401 or 403: whether that says that the token is over. If so, it fetches another, and
   * resolves to true when the next `sign` will use that. The host then signs the request again and sends it once more; a
   * second refusal stands. It resolves to false for any other refusal.
   *
   * The host calls it once for a token: calls that the same token fails meanwhile wait for the one that asks, and are sent
   * again with what it got. It is one call all the same, with one reserve and one settle: what a 401 refused was not accepted,
   * and no byte of an answer has left. A throw ends the calls that wait, as in `sign`; so do 30 s without an answer.
   */
  renewToken(refusal: AuthRejection, credential: C): boolean | Promise<boolean>;
}

/** What a provider said to a request that it did not let in. */
export interface AuthRejection {
  /** HTTP status of the response: 401 or 403. */
  readonly status: number;
  /** Headers of the response. */
  readonly headers: HeadersIn;
  /** Its first 64 KiB. */
  readonly body: Buffer;
  /** Aborts when the host no longer waits for a token. */
  readonly signal: AbortSignal;
}

/** A request as it will leave, for schemes that sign it. */
export interface SignableRequest {
  /** HTTP method. */
  readonly method: string;
  /** Full URL of the request. */
  readonly url: URL;
  /** Headers of the request, without the credential. */
  readonly headers: HeadersOut;
  /** Bytes of the body; null if there is none. */
  readonly body: Buffer | null;
  /** Aborts when the call is canceled or its time is over. */
  readonly signal: AbortSignal;
}

/** What an endpoint says of itself to routing and privacy. */
export interface EndpointCapabilities {
  /** Whether it has this model, unless ModelInfo.protocols knows better. Pure: asked whenever a name is resolved. */
  servesModel?(model: string): boolean;
  /** always = the host folds for a client that wants it whole; never = it makes the stream. Default: on_request. */
  streaming?: "on_request" | "always" | "never";
  /** Features that every model of this endpoint supports or lacks. */
  can?: FeatureSupport;
  /** Data policy of this endpoint, where it differs from the provider's. */
  dataPolicy?: Partial<DataPolicy>;
}

/** The host sends: pool, deadline, abort, back-pressure and credential are its own. */
export interface ProtocolEndpoint<C = unknown> extends EndpointConnection<C>, EndpointCapabilities {
  /** Protocol that the endpoint speaks. */
  protocol: Protocol;
  /** Paths by operation, where they differ from the protocol's. */
  paths?: { readonly [name: string]: Opt<Path> };
  /**
   * Where this backend is told which requests are of one conversation, so that it sends them to where their prompt is cached: in a field
   * of the body, a header, or both. Under `pick: sticky` the host sets them, to a hash, before the hooks of middlewares
   * and where nothing stands yet. Never under Service-ZDR.
   */
  sessionAffinity?: { field?: Opt<string>; header?: Opt<string> };
  /** After the protocol's, before the middlewares'. */
  prepare?(out: Outgoing, call: Call): Sync;
}

/**
 * No wire format of ours: several requests, an SDK, or nothing. Always translated. `run` is called once for each call, after its
 * reserve; its fetches pass the `prepare` hooks. It never retries, and stops when `call.signal` fires. A `fail()` in it ends the
 * call as a provider's refusal would, with the `retry-after` of the last answer to `call.fetch` that was not ok; any other throw is a
 * failure of the provider. `count` is asked for token counts; without it the host estimates.
 */
export interface NativeEndpoint<C = unknown, K extends Operation = Operation>
  extends Partial<EndpointConnection<C>>, EndpointCapabilities {
  /** Model type that the endpoint serves. */
  operation: K;
  /** The events of one answer, ending with `finish`. Read as fast as the client reads. */
  run(request: ModelRequest<K>, call: Call, credential: C): AsyncIterable<ModelEvent>;
  /** How many tokens the request would be, without making an answer. */
  countTokens?(request: ModelRequest<K>, call: Call, credential: C): Promise<number>;
}
