// A protocol is a pure codec: no I/O, no clock, nothing remembered between two methods.
// Frontends use its server half, providers its client half; both halves have the same four words.
import type { JSONSchema } from "json-schema-to-ts";
import type { Fault } from "../model/error.ts";
import type { FinishReason, ModelResponse, ModelEvent, UsageReport } from "../model/event.ts";
import type { ModelInfo } from "../model/facts.ts";
import type { Operation, ModelRequest } from "../model/request.ts";
import type { Unit, Usage } from "../model/usage.ts";
import type { OperationSpec } from "../model/operations/operation-spec.ts";
import type { Body, HeadersIn, HeadersOut, JsonObject, Opt, Sync } from "../model/values.ts";
import type { Outgoing } from "./outgoing.ts";
import type { FieldAllowlist } from "./references.ts";
import type { LimitState } from "./store/limit.ts";
import type { ConversationKey, RequestFacts } from "./request-facts.ts";

/** generate: metered · count: answered or estimated · relay: same protocol only, the client's method and query kept (retrieve, cancel…). */
export type ActionType = "generate" | "count" | "relay";

/** Below the endpoint's base; it cannot leave its origin. */
export type Path = string | ((of: CallContext) => string);

/**
 * One wire format, made by a function of its dialect. Equal ids mean one format, and so passthrough mode. Either half may be
 * missing. The host calls its methods from many requests at once; none of them may keep anything between two calls.
 */
export interface Protocol<K extends Operation = Operation> {
  /** ID of the API format, such as `chat-completions`. */
  id: string;
  /**
   * What is asked for in it: `chatWork`, `imageWork`, `embeddingWork`, `rerankWork`, `moderationWork`, `completionWork`,
   * `speechWork`, `transcriptWork`, or a package's own.
   */
  operationSpec: OperationSpec<K>;
  /** The half that frontends use. Without it, no frontend can speak the protocol. */
  server?: ServerHalf<K>;
  /** The half that providers use. Without it, no provider can be called in the protocol. */
  client?: ClientHalf<K>;
  /**
   * These pass on passthrough mode, a trailing * being a prefix; all others stop here. Even where they are listed
   * these stop: of a request, what clients present as a key (`authorization`, `x-api-key`, `cookie`, …); of an answer, what tells of
   * the operator's account. Secrets are masked in the rest.
   *
   * `reviewed`: which of the request's may leave under Service-ZDR, each with the words that were reviewed. Any other header, and
   * any other word in a list separated by commas, is not sent. Absent: no header of the client is sent.
   */
  headers?: {
    /** Names of client headers that are sent to the provider. */
    request?: readonly string[];
    /** Names of provider headers that are sent to the client. */
    response?: readonly string[];
    /** Header values that may be sent under Service-ZDR, by header. */
    zdrAllowed?: { readonly [header: string]: readonly string[] };
  };
  /** What may leave of its bodies under Service-ZDR. Without it, nothing but what the operator allows. */
  zdrAllowedFields?: FieldAllowlist;
}

/**
 * The half that faces clients: reads their requests, writes their answers. Pure functions and push encoders, one
 * encoder for each answer. A `fail()` in `request` is told to the client as it is; any other throw is a 500. `survey`
 * and `request` are linear in the body.
 */
export interface ServerHalf<K extends Operation> {
  /** What the gateway relies on, open for the rest. Compiled once for each generation; a body that breaks it is a 400. */
  schema: JSONSchema;
  /** One cheap look at each body, on both lanes: what the host must know without decoding. */
  analyze(body: Body): RequestFacts;
  /** Decodes a body, at most once for a request, when first something reads it. Loses nothing (rest, ext, opaque); refuses only what is malformed. */
  decodeRequest(body: Body, op: ActionType): ModelRequest<K>;
  /**
   * What all turns of one conversation have in common. Called once for a request to a name with `pick: sticky`, which sends them to
   * one place, so that what the provider has cached is found again. Pure and linear in the body. Absent, or with nothing in it: such a
   * request goes by chance. A throw is a 500.
   */
  conversationKey?(body: Body): ConversationKey;
  /**
   * The media type of what `stream` and `whole` write, asked once for each request before anything is written. Absent:
   * events are `text/event-stream`, a whole answer is `application/json`. A protocol of lines says
   * `application/x-ndjson` here.
   */
  contentType?(asked: Pick<ResponseContext, "stream" | "body" | "query">): string;
  /**
   * How the client that wrote this body spells a field that a client half names in the common words: `stop` is
   * `stop_sequences` to some. Errors and warnings name the client's own. Absent: as it is.
   */
  clientFieldName?(field: string, body: Body): string;
  /**
   * Makes the encoder of one streamed answer: it writes whole events in the client's dialect, or the bytes of an answer that has
   * no events.
   */
  createEncoder(write: (piece: string | Buffer) => void, to: ResponseContext): Encoder;
  /**
   * Writes an answer that goes out in one piece. Called once for an answer. JSON is written as JSON. A Buffer is the answer as it
   * is; `type` says what it is. A `fail("upstream")` says that this is no answer to the request, and another candidate may be
   * tried; any other throw is a 500. The call is billed either way.
   */
  encodeResponse(answer: ModelResponse, to: ResponseContext): JsonObject | Buffer;
  /**
   * Writes an error before the headers of a response are sent. `status`: the provider's own status, which the client gets; a format that repeats the
   * status in its body repeats this one. If it throws, the host writes a plain error.
   */
  encodeFault(fault: Fault, x: { id: string; status?: number }): ErrorResponse;
  /** Writes the answer to a token count. Absent: counts are refused. */
  encodeCount?(tokens: number): JsonObject;
  /** Request id and rate limits, by this protocol's names. `now`: Unix milliseconds, for names that count from it; codecs have no clock. */
  encodeHeaders?(of: { id: string; limits: readonly LimitState[]; now: number }): HeadersOut;
  /**
   * Text that the host writes between two events after 15 s of silence. If empty, nothing is written, and the head of a stream
   * waits for the first content, so that a relay can still set its media type.
   */
  ping: string;
  /**
   * The text that every event starts with, such as `data: `, for a format whose clients accept nothing between two events. The
   * first ping of a silence is written after it, and the next event continues without it. `ping` must then be white space that
   * parsers skip there. Default: pings stand between events.
   */
  pingPrefix?: string;
  /**
   * After an error inside a stream the connection is cut, once the error has left: for a wire whose clients take an end for a good
   * one. Absent: the answer ends as any other.
   */
  closeOnError?: true;
}

/**
 * The half that faces providers: writes their requests, reads their answers. Pure functions and push decoders, one
 * decoder for each call. A `fail()` while an answer is read ends the call: before the first content another candidate may be
 * tried, where its kind allows it; after it the client's stream ends in its protocol's error. Any other throw is a 500.
 */
export interface ClientHalf<K extends Operation> {
  /**
   * By what a route calls itself. A name that neither the endpoint nor its protocol has makes the endpoint no candidate for
   * that route.
   */
  paths: { generate: Path; [name: string]: Opt<Path> };
  /** `lose()` or `fail("unsupported")` what this wire cannot say. */
  encodeRequest(request: ModelRequest<K>, of: CallContext): Body;
  /**
   * Whether this wire knows a top-level field, in any of its dialects. Such a field is said by `request` in its own words, and
   * the host never takes it from what another protocol's codec did not know.
   */
  knowsField?(field: string): boolean;
  /** The look at a body of this wire as it leaves, which holds and promises are made from. Absent: the server half's. */
  analyze?(body: Body): RequestFacts;
  /** Makes the decoder of one streamed answer. Events are emitted while bytes are pushed, in order, and none after `finish`. */
  createDecoder(emit: (event: ModelEvent) => void, of: CallContext, headers: HeadersIn): Decoder;
  /** Reads an answer that came in one piece, and emits the same events. */
  decodeResponse(
    body: Buffer,
    emit: (event: ModelEvent) => void,
    of: CallContext,
    headers: HeadersIn,
  ): void;
  /** Names a refusal: any status but 2xx and 3xx, with the first 64 KiB of its body. The kind that it says decides what the host does. */
  decodeFault(status: number, headers: HeadersIn, body: Buffer): Fault;
  /** Reads the answer to a token count. Absent: the host estimates. */
  decodeCount?(body: Buffer): number;
  /** Both lanes, first of all: ask for usage, apply the dialect. */
  prepare?(out: Outgoing, of: CallContext): Sync;
  /**
   * What only the account that made it can read, such as encrypted reasoning. A provider that refuses a request with one of `codes`
   * is asked once more, in the same request and within `attempts`, after `leave` has taken it out of what leaves and named it with
   * `lose`. `leave` is called before the hooks of middlewares; a `fail()` in it ends that call as the provider's refusal would.
   */
  accountBound?: { errorCodes: readonly string[]; strip(out: Outgoing, of: CallContext): Sync };
  /**
   * How many stop sequences this format has a field for; `request` leaves the others to `cutAt`. If another endpoint of the same
   * provider takes all stop sequences of a request, the host calls that one. Default: any number.
   */
  maxStopSequences?: number;
  /** Bounds the output. Without it, hard budgets cannot use this endpoint. */
  capOutput?(out: Outgoing, tokens: number): Sync;
  /**
   * Whether an answer to this may hold thought that does not pass by, or not all of it: what broke off is billed with room
   * for it. Absent: it may.
   */
  mayHideReasoning?(out: Outgoing, of: CallContext): boolean;
  /**
   * Units of hosted tools whose runs this half counts in every answer: a unit that no report of an answer has did not run. Of
   * other tools that a request asks for, one run is billed, and the bill is an estimate.
   */
  countedToolUnits?: readonly Unit[];
  /**
   * passthrough mode: called once for each answer, when upstream's head is there. Without it, same protocol in and out is
   * translated. `headers`: upstream's, all of them.
   */
  createPassthrough?(
    sink: PassthroughSink,
    to: ResponseContext,
    headers: HeadersIn,
  ): PassthroughStream;
}

/** One answer of a provider on its way in. `end()` without a finish throws: truncated is not complete. */
export interface Decoder {
  /** The bytes as they come, in pieces of any size. Not called again after a throw. */
  push(chunk: Buffer): void;
  /** Called once, when the provider has ended its message well. */
  end(): void;
}

/** Gets usage twice: after `start` a guess of the input, for wires that tell counts at their beginning; and just before the finish the one that is settled. */
export interface Encoder {
  /** Writes one event, or keeps it until it can be written. Called in order; the last one is `finish`. */
  writeEvent(event: ModelEvent): void;
  /** The protocol's own error, inside a stream that has begun. Nothing follows it. */
  writeFault(fault: Fault): void;
}

/** Passes an upstream's bytes on and reports what it sees in them. `between`: no event is half written, so a ping may go here. */
export interface PassthroughStream extends Decoder {
  /** Writes the protocol's own error to the client, after bytes that have passed. Nothing follows it. */
  writeFault(fault: Fault): void;
  /** Whether no event is half written, so that a ping may be written. */
  readonly isBetweenEvents: boolean;
}

/** What a relay reports while bytes pass. A JSON answer is one push() of the whole body. What is passed on within one push() leaves in one write. */
export interface PassthroughSink {
  /**
   * The media type of what the client gets, where it is another than the server half's `type` says: upstream's own, for sound or
   * plain text. Said before the first bytes. Once the head has left with another type, the call fails.
   */
  setContentType(mime: string): void;
  /**
   * On to the client: the same Buffer or subarrays. Held before content(), and after finish() until the settle row is durable,
   * for 2 s at most.
   */
  write(chunk: Buffer): void;
  /** Content seen; the first is the commit point. `bytes`: how much text it is, from which a cut answer is billed. */
  reportContent(bytes?: number): void;
  /** Upstream's own id of this answer. */
  reportStart(id: string): void;
  /** Counts as the provider tells them; a later count of the same unit takes the place of the one before. */
  reportUsage(seen: UsageReport): void;
  /**
   * Said before the terminal bytes are passed on. What comes back is what was settled, estimates included: where upstream
   * has not told the client, the relay tells it.
   */
  reportFinish(reason: FinishReason): Opt<Usage>;
}

/** How a codec says what it could not carry. */
export interface LossReporter {
  /**
   * Names a field that is lost. The client reads it in `x-tollgate-warnings`, if the head of the answer has not left yet. Where the request is strict the host throws
   * `unsupported` here, so a codec need not ask whether it is.
   */
  reportLoss(field: string, how: "dropped" | "approximated", code?: string): void;
}

/** What a client half may know of the call it encodes. */
export interface CallContext extends LossReporter {
  /** Operation of the route: generate, count, or relay. */
  readonly actionType: ActionType;
  /** Key into `paths`. */
  readonly action: string;
  /** Upstream's own name. */
  readonly model: string;
  /** Metadata of the model. */
  readonly info: ModelInfo;
  /** Whether a stream is asked of upstream. */
  readonly stream: boolean;
  /**
   * Makes the host end the answer before the first of these texts, for stop sequences that this format cannot express. The host
   * closes the connection to the provider and reports `stop` as approximated. Only blocks of text are searched. Absent where no answer
   * is awaited: such stop sequences are unsupported there.
   */
  emulateStopSequences?(texts: readonly string[]): void;
  /** Parameters of the client's path, such as `id` of `/v1/responses/:id`. */
  readonly params: { readonly [name: string]: string };
  /** Query of the client's URL, without credentials. */
  readonly query: URLSearchParams;
  /** relay: the operator lets this provider keep answers, to be found again by the key that asked for them. Absent = refuse. */
  readonly stateMode?: Opt<"reject" | "relay">;
}

/** What a server half may know of the answer it writes. */
export interface ResponseContext extends LossReporter {
  /** ID of the request, sent as `x-request-id`. */
  readonly id: string;
  /** Provider-qualified, for every chunk. */
  readonly model: string;
  /** Unix seconds. */
  readonly created: number;
  /** Whether the client requested a stream. */
  readonly stream: boolean;
  /** The client's own request. */
  readonly body: Body;
  /** Query of the client's URL, without credentials. */
  readonly query: URLSearchParams;
  /** What is known of the model that answers. A relay reads in its price which units are counted by themselves. */
  readonly info?: Opt<ModelInfo>;
}

/** Without a status, the kind's. */
export interface ErrorResponse {
  /** HTTP status. Default: the status of the fault's kind. */
  status?: Opt<number>;
  /** JSON body of the response. */
  body: JsonObject;
}
