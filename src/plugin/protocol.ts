// A protocol is a pure codec: it performs no I/O, reads no clock, and keeps no state between two
// calls. Frontends use its server half, and providers use its client half.
import type { JSONSchema } from "json-schema-to-ts";
import type { Fault } from "../model/error.ts";
import type { FinishReason, ModelResponse, ModelEvent, UsageReport } from "../model/event.ts";
import type { ModelInfo } from "../model/facts.ts";
import type { Operation, ModelRequest } from "../model/request.ts";
import type { Unit, Usage } from "../model/usage.ts";
import type { OperationSpec } from "../model/operations/operation-spec.ts";
import type { Body, HeadersIn, HeadersOut, JsonObject, Opt, Sync } from "../model/values.ts";
import type { Outgoing } from "./outgoing.ts";
import type { FieldAllowlist, ConversationKey, RequestFacts } from "./references.ts";
import type { ProviderSession, SocketHalf } from "./socket.ts";
import type { LimitState } from "./store/limit.ts";

/**
 * Operation of a route.
 *
 * - `generate`: creates content, and is metered.
 * - `count`: counts tokens. The provider counts them, or the host estimates the number.
 * - `relay`: forwards a request of the same protocol with the client's method and query, such as
 *   retrieve or cancel.
 */
export type ActionType = "generate" | "count" | "relay";

/**
 * A path that is appended to the endpoint's base URL. The result must have the same origin as that
 * URL.
 */
export type Path = string | ((of: CallContext) => string);

/**
 * One API format, created by a function of its dialect. Protocols with equal IDs have the same
 * format, so passthrough mode is possible between them. One of the two halves can be missing. The
 * host calls the methods from many concurrent requests, so they must not keep state between two
 * calls.
 */
export interface Protocol<K extends Operation = Operation> {
  /** ID of the API format, such as `chat-completions`. */
  id: string;
  /**
   * Model type that the protocol requests: `chatWork`, `imageWork`, `embeddingWork`, `rerankWork`,
   * `moderationWork`, `completionWork`, `speechWork`, `transcriptWork`, or one that a package
   * defines.
   */
  operationSpec: OperationSpec<K>;
  /** The half that frontends use. Without the server half, no frontend can speak the protocol. */
  server?: ServerHalf<K>;
  /**
   * The half that providers use. Without the client half, no provider can be called in the
   * protocol.
   */
  client?: ClientHalf<K>;
  /** The half that relays sockets. Without it, the protocol has no relay sockets. */
  socket?: SocketHalf;
  /**
   * Whether frontends run the requests as jobs with `ctx.jobCalls`. They decode requests themselves,
   * so such a protocol needs no half.
   */
  runsJobs?: true;
  /**
   * Headers that passthrough mode forwards. A trailing * matches a prefix. All other headers are
   * removed. Some headers are removed even if they are listed: request headers that contain client
   * credentials (`authorization`, `x-api-key`, `cookie`, …), and response headers that identify the
   * operator's account. Secrets in the forwarded headers are masked.
   */
  headers?: {
    /** Names of client headers that are sent to the provider. */
    request?: readonly string[];
    /** Names of provider headers that are sent to the client. */
    response?: readonly string[];
    /**
     * Header values that may be sent under Service-ZDR, by header. No other header, and no other
     * item of a comma-separated list, is sent. Default: no client header is sent.
     */
    zdrAllowed?: { readonly [header: string]: readonly string[] };
  };
  /**
   * Fields of request bodies that may be sent under Service-ZDR. Without it, only fields that the
   * operator allows are sent.
   */
  zdrAllowedFields?: FieldAllowlist;
}

/**
 * The half of a protocol that is used for clients: it decodes requests and encodes responses. It
 * consists of pure functions and of push encoders, one for each response. The error of a `fail()`
 * in `decodeRequest` is sent to the client unchanged. Any other error results in a 500. `analyze`
 * and `decodeRequest` must take linear time in the size of the body.
 */
export interface ServerHalf<K extends Operation> {
  /**
   * Schema of the fields that the gateway relies on. It allows further fields. It is compiled once
   * per config generation. A body that violates it is rejected with a 400.
   */
  schema: JSONSchema;
  /**
   * Returns the facts that the host needs without decoding the body. It is called for each body, in
   * passthrough and translated mode, and must be fast.
   */
  analyze(body: Body): RequestFacts;
  /**
   * Decodes a body into the common form. It is called at most once per request, when the decoded
   * request is read for the first time. It must keep all fields (`rest`, `ext`, `opaque`) and
   * reject only malformed bodies.
   */
  decodeRequest(body: Body, op: ActionType): ModelRequest<K>;
  /**
   * Returns the parts of a request that are the same in all turns of one conversation. It is called
   * once for each request to a model name with `pick: sticky`, which sends the turns of a
   * conversation to the same target, to use the provider's prompt cache. It must be pure and linear
   * in the body. If it is missing or returns nothing, the target is chosen at random. If it throws,
   * the client receives a 500.
   */
  conversationKey?(body: Body): ConversationKey;
  /**
   * Returns the media type of the output of `createEncoder` and `encodeResponse`. It is called once
   * per request, before anything is written. Default: `text/event-stream` for events and
   * `application/json` for a complete response. A line-based protocol returns
   * `application/x-ndjson` here.
   */
  contentType?(request: Pick<ResponseContext, "stream" | "body" | "query">): string;
  /**
   * Returns the client's name for a field, given its name in the common form. For example, `stop`
   * is `stop_sequences` in some protocols. Errors and warnings use the client's name. Default: the
   * name unchanged.
   */
  clientFieldName?(field: string, body: Body): string;
  /**
   * Creates the encoder of one streamed response. It writes complete events in the client's
   * dialect, or the bytes of a response that has no events.
   */
  createEncoder(write: (piece: string | Buffer) => void, to: ResponseContext): Encoder;
  /**
   * Encodes a response that is sent in one piece. It is called once per response. An object is sent
   * as JSON. A Buffer is sent unchanged, with the media type from `contentType`. `fail("upstream")`
   * reports that the provider's response does not match the request, so another candidate may be
   * tried. Any other error results in a 500. The call is billed in each of these cases.
   */
  encodeResponse(answer: ModelResponse, to: ResponseContext): JsonObject | Buffer;
  /**
   * Writes an error before the headers of a response are sent. `status` is the provider's own
   * status, which the client receives. A format that repeats the status in its body must use this
   * value. If it throws, the host writes a plain error.
   */
  encodeFault(fault: Fault, x: { id: string; status?: number }): ErrorResponse;
  /** Encodes the response to a token count. If it is missing, token counts are rejected. */
  encodeCount?(tokens: number): JsonObject;
  /**
   * Returns headers with the request ID and the rate limits, under this protocol's names. `now` is
   * the current time in Unix milliseconds, for headers that are relative to it, because codecs have
   * no clock.
   */
  encodeHeaders?(of: { id: string; limits: readonly LimitState[]; now: number }): HeadersOut;
  /**
   * Text that the host writes between two events after 15 s of silence. If empty, nothing is
   * written, and the response headers are held back until the first token, so that a relay can
   * still set its media type.
   */
  ping: string;
  /**
   * Text that every event starts with, such as `data: `, for a format whose clients accept nothing
   * between two events. During silence, the first ping is written after this text, and the next
   * event continues after the ping. `ping` must then be white space that parsers skip at that
   * position. Default: pings are written between events.
   */
  pingPrefix?: string;
  /**
   * Whether the connection is closed after an error inside a stream was sent. Use it for a format
   * whose clients take the end of the stream for a complete response. Default: the response ends
   * normally.
   */
  closeOnError?: true;
}

/**
 * The half of a protocol that is used for providers: it encodes requests and decodes responses. It
 * consists of pure functions and of push decoders, one for each call. A `fail()` while a response
 * is read ends the call. Before the first token, another candidate may be tried if the kind of
 * fault allows it. After the first token, the client's stream ends with the error format of its
 * protocol. Any other error results in a 500.
 */
export interface ClientHalf<K extends Operation> {
  /**
   * Paths by the action of a route. If neither the endpoint nor its protocol has a path for an
   * action, the endpoint is not a candidate for that route.
   */
  paths: { generate: Path; [name: string]: Opt<Path> };
  /**
   * Encodes a request for the provider. Call `reportLoss()` or `fail("unsupported")` for fields
   * that the format cannot express.
   */
  encodeRequest(request: ModelRequest<K>, of: CallContext): Body;
  /**
   * Whether any dialect of the format has this top-level field. `encodeRequest` writes such a field
   * itself, so the host does not copy it from unknown fields of another protocol.
   */
  knowsField?(field: string): boolean;
  /**
   * Analyzes a body in this format as it is sent. Reservations and data policies are derived from
   * it. Default: `analyze` of the server half.
   */
  analyze?(body: Body): RequestFacts;
  /**
   * Creates the decoder of one streamed response. It emits events while bytes are pushed, in order,
   * and none after `finish`.
   */
  createDecoder(emit: (event: ModelEvent) => void, of: CallContext, headers: HeadersIn): Decoder;
  /** Decodes a response that arrived in one piece, and emits the same events as a stream would. */
  decodeResponse(
    body: Buffer,
    emit: (event: ModelEvent) => void,
    of: CallContext,
    headers: HeadersIn,
  ): void;
  /**
   * Decodes an error response: any status outside 2xx and 3xx, with the first 64 KiB of the body.
   * The kind of the returned fault determines what the host does next.
   */
  decodeFault(status: number, headers: HeadersIn, body: Buffer): Fault;
  /** Decodes the response to a token count. If it is missing, the host estimates. */
  decodeCount?(body: Buffer): number;
  /**
   * Creates the session of one WebSocket to a provider, over which requests are sent. Endpoints
   * state in `sockets` whether they have one. Default: requests are sent over HTTP only.
   */
  createSession?(): ProviderSession;
  /**
   * Edits the outgoing request in passthrough and translated mode, before all other `prepare`
   * functions. Use it to request usage counts and to apply the dialect.
   */
  prepare?(out: Outgoing, of: CallContext): Sync;
  /**
   * Content that only the provider account that created it can read, such as encrypted reasoning.
   * If a provider rejects a request with one of `errorCodes`, the provider is called again without
   * that content. The second call belongs to the same request and counts toward its limit of
   * attempts. Before the second call, `strip` removes the content from the outgoing request and
   * reports it with `reportLoss`. `strip` is called before the hooks of middleware. A `fail()` in
   * `strip` ends that call like a rejection by the provider.
   */
  accountBound?: { errorCodes: readonly string[]; strip(out: Outgoing, of: CallContext): Sync };
  /**
   * Maximum number of stop sequences that the format can express. `encodeRequest` passes the
   * remaining stop sequences to `emulateStopSequences`. If another endpoint of the same provider
   * accepts all stop sequences of a request, the host calls that endpoint. Default: no maximum.
   */
  maxStopSequences?: number;
  /**
   * Limits the length of the output. Without it, this endpoint cannot be used with hard
   * reservations.
   */
  capOutput?(out: Outgoing, tokens: number): Sync;
  /**
   * Whether the response may contain reasoning that is not sent or only partly sent. A truncated
   * response is then billed with an additional amount for hidden reasoning. Default: true.
   */
  mayHideReasoning?(out: Outgoing, of: CallContext): boolean;
  /**
   * Units of hosted tools whose runs this half counts in every response. If a response reports no
   * such unit, the tool did not run. For other requested tools, one run is billed, and the cost is
   * an estimate.
   */
  countedToolUnits?: readonly Unit[];
  /**
   * Creates the passthrough stream of one response, when the provider's headers have arrived.
   * `headers` are all headers of the provider. Without this method, requests are translated even if
   * client and provider use the same protocol.
   */
  createPassthrough?(
    sink: PassthroughSink,
    to: ResponseContext,
    headers: HeadersIn,
  ): PassthroughStream;
}

/**
 * Decodes one response of a provider. `end()` throws if no finish was decoded, because a truncated
 * response is not complete.
 */
export interface Decoder {
  /** Receives bytes as they arrive, in pieces of any size. Not called again after it throws. */
  push(chunk: Buffer): void;
  /** Called once, when the provider has ended its response normally. */
  end(): void;
}

/**
 * Encodes one response to a client. It receives usage twice: an estimate of the input after
 * `start`, for formats that send counts at the beginning, and the settled usage just before the
 * finish event.
 */
export interface Encoder {
  /**
   * Writes one event, or buffers it until it can be written. Events arrive in order, and the last
   * event is `finish`.
   */
  writeEvent(event: ModelEvent): void;
  /** Writes an error in the format of the protocol into a stream that has started. Called last. */
  writeFault(fault: Fault): void;
}

/** Forwards the bytes of a provider's response and reports their content. */
export interface PassthroughStream extends Decoder {
  /**
   * Writes an error in the format of the protocol to the client, after the bytes that were
   * forwarded. Called last.
   */
  writeFault(fault: Fault): void;
  /** Whether the forwarded bytes end between two events, so that a ping can be written. */
  readonly isBetweenEvents: boolean;
}

/**
 * Receives the reports of a passthrough stream while bytes are forwarded. A JSON response is one
 * `push()` with the whole body. Bytes that are forwarded during one `push()` are sent in one write.
 */
export interface PassthroughSink {
  /**
   * Sets the media type of the response if it differs from `contentType` of the server half, for
   * example the provider's own type for audio or plain text. Call it before the first bytes. If the
   * headers were already sent with another type, the call fails.
   */
  setContentType(mime: string): void;
  /**
   * Forwards bytes to the client. Pass the same Buffer or subarrays of it. The bytes are held until
   * `reportContent`, and after `reportFinish` until the settle row is durable, for up to 2 s.
   */
  write(chunk: Buffer): void;
  /**
   * Reports that the response contains content. After the first report, no other candidate can be
   * tried. `bytes` is the length of the text. A truncated response is billed by it.
   */
  reportContent(bytes?: number): void;
  /** Reports the provider's ID of the response. */
  reportStart(id: string): void;
  /**
   * Reports usage counts of the provider. A later count replaces an earlier count of the same unit.
   */
  reportUsage(seen: UsageReport): void;
  /**
   * Reports the finish, before the terminal bytes are forwarded. Returns the settled usage,
   * including estimates. If the provider has not sent usage to the client, the relay sends this
   * value.
   */
  reportFinish(reason: FinishReason): Opt<Usage>;
}

/** Reports fields that a codec could not carry over. */
export interface LossReporter {
  /**
   * Reports a field that was dropped or approximated. The client receives it in
   * `x-tollgate-warnings` if the headers of the response have not been sent. If the request is
   * strict, the host throws `unsupported` in this method, so codecs need not check for it.
   */
  reportLoss(field: string, how: "dropped" | "approximated", code?: string): void;
}

/** Properties of a call that a client half can use. */
export interface CallContext extends LossReporter {
  /** Operation of the route: generate, count, or relay. */
  readonly actionType: ActionType;
  /** Name of the operation, which is the key into `paths`. */
  readonly action: string;
  /** The provider's name of the model. */
  readonly model: string;
  /** Metadata of the model. */
  readonly info: ModelInfo;
  /** Whether a stream is requested from the provider. */
  readonly stream: boolean;
  /**
   * Makes the host end the response before the first occurrence of one of these texts, for stop
   * sequences that this format cannot express. The host closes the connection to the provider and
   * reports `stop` as approximated. It searches only text blocks. Unset if no response is expected;
   * such stop sequences are then unsupported.
   */
  emulateStopSequences?(texts: readonly string[]): void;
  /** Parameters of the client's path, such as `id` of `/v1/responses/:id`. */
  readonly params: { readonly [name: string]: string };
  /** Query of the client's URL, without credentials. */
  readonly query: URLSearchParams;
  /**
   * Whether the operator allows this provider to store responses, which the key that created them
   * can retrieve later (`relay`). Default: `reject`.
   */
  readonly stateMode?: Opt<"reject" | "relay">;
}

/** Properties of a response that a server half can use. */
export interface ResponseContext extends LossReporter {
  /** ID of the request, sent as `x-request-id`. */
  readonly id: string;
  /** Model that answered, with its provider, for every chunk. */
  readonly model: string;
  /** Creation time, in Unix seconds. */
  readonly created: number;
  /** Whether the client requested a stream. */
  readonly stream: boolean;
  /** Body of the client's request. */
  readonly body: Body;
  /** Query of the client's URL, without credentials. */
  readonly query: URLSearchParams;
  /**
   * Metadata of the model that answered, if known. Its price lists which units are counted
   * separately.
   */
  readonly info?: Opt<ModelInfo>;
  /**
   * Whether the client asked for the cost of the response in the usage of its last event, and the
   * operator allows it. If false or unset, the protocol must not add the cost.
   */
  readonly includesCost?: Opt<boolean>;
  /**
   * Returns the cost of all calls in US dollars, or null if it is not known. The cost is final in the
   * encoder's `finish` event, and in a passthrough stream after `reportFinish`.
   */
  costUsd?(): number | null;
}

/** An error response. */
export interface ErrorResponse {
  /** HTTP status. Default: the status of the fault's kind. */
  status?: Opt<number>;
  /** JSON body of the response. */
  body: JsonObject;
  /** Headers of the response, such as `www-authenticate`. Default: the headers of the host. */
  headers?: Opt<HeadersOut>;
}
