// WebSockets of clients and of providers. A frontend serves a socket in one of two ways. A request
// socket turns every message of the client into one ordinary request. A relay socket connects the
// client to the provider's own socket, and a meter reads every message on its way.
import type { Fault } from "../model/error.ts";
import type { FinishReason, ModelEvent, UsageReport } from "../model/event.ts";
import type { ModelInfo, Privacy } from "../model/facts.ts";
import type { ModelRequest } from "../model/request.ts";
import type { Usage } from "../model/usage.ts";
import type { HeadersIn, JsonObject, Opt } from "../model/values.ts";
import type { Outgoing } from "./outgoing.ts";
import type { RequestFacts } from "./references.ts";

/** A complete message of a WebSocket: a string for a text message, a Buffer for a binary one. */
export type SocketMessage = string | Buffer;

/** A request that a message of the client makes. */
export interface SocketRequest {
  /** Name of the lane. Default: the unnamed lane. */
  readonly lane?: Opt<string>;
  /** JSON text of the request's body. */
  readonly body: SocketMessage;
}

/** An error response of a request, in the form that HTTP clients receive. */
export interface SocketError {
  /** HTTP status. */
  readonly status: number;
  /** Body of the error in the protocol of the route. */
  readonly body: JsonObject;
  /** Headers of the error, such as `retry-after`. */
  readonly headers: HeadersIn;
}

/** The response that a request continues, if the client sent only new items. */
export interface ContinuedResponse {
  /** ID of the response. */
  readonly id: string;
  /** Number of items at the start of the input that belong to the existing conversation. */
  readonly items: number;
}

/**
 * Requests over one WebSocket of a provider, one after the other. The host has checked and billed a
 * request as it does for HTTP. It reads the response as a stream over HTTP.
 */
export interface ProviderSession {
  /**
   * ID of the response that the connection can continue. Undefined if there is none, or while a
   * response runs.
   */
  readonly continuable: Opt<string>;
  /**
   * Edits the final request into the message that makes it. Returns false if the request cannot be
   * sent over a WebSocket: the host then sends it over HTTP.
   *
   * With `continued`, the connection can continue that response. The session may replace the items
   * of the existing conversation with its ID, but only if the provider would read the same input.
   */
  prepareMessage(out: Outgoing, continued: Opt<ContinuedResponse>): boolean;
  /** Reads a message of the provider. Returns undefined for one that belongs to no response. */
  readMessage(message: SocketMessage): Opt<ProviderMessage>;
}

/** A message of a provider, as a part of the response to the request that runs. */
export interface ProviderMessage {
  /** The event as text of an event stream, such as "data: {}" with two line breaks. */
  readonly event?: Opt<string>;
  /** Whether the response ends with this message. */
  readonly isLast?: Opt<boolean>;
  /** The provider rejects the request. It is handled like an HTTP response with this error. */
  readonly rejection?: Opt<SocketError>;
  /**
   * Whether the rejection concerns this connection and not the request. The host then sends the
   * complete request once over a new connection, and over HTTP if the new connection rejects it in
   * the same way.
   */
  readonly needsNewConnection?: Opt<boolean>;
}

/** The half of a protocol that relays sockets. Its meters read messages and keep no other state. */
export interface SocketHalf {
  /** Creates the meter of one connection. */
  createMeter(sink: MeterSink, to: MeterContext): SocketMeter;
  /**
   * Encodes an error as a message to the client, and states whether the specification requires the
   * connection to be closed after it.
   */
  encodeFault(
    fault: Fault,
    x: { id: string; message?: Opt<SocketMessage> },
  ): { message?: Opt<SocketMessage>; close?: Opt<number> };
  /** How calls are set up. Default: the protocol has no calls. */
  calls?: CallSetup;
}

/**
 * Sets up calls, such as WebRTC calls. Their audio is sent directly between the client and the
 * provider. The host observes a call over a socket of the provider. The meter reads the provider's
 * messages on this socket.
 */
export interface CallSetup {
  /**
   * Reads the client's request. Called once per call, before the model is resolved. `session`
   * contains the settings that the client's credential determines. The client's own settings are
   * added to them, and must not exceed them.
   */
  readRequest(
    request: CallRequest & {
      readonly query: URLSearchParams;
      readonly session: Opt<JsonObject>;
    },
  ): Promise<CallInput>;
  /** Returns the ID of the call, from the headers of the provider's response. */
  callId(headers: HeadersIn): Opt<string>;
}

/** Result of `readRequest`. */
export interface CallInput {
  /** Model name as the client wrote it. */
  model: string;
  /**
   * Encodes the request with the provider's name of the model. Called for each provider that is
   * tried.
   */
  encode(model: string): Promise<CallRequest>;
}

/** A request that sets up a call. */
export interface CallRequest {
  /** Media type of the body. */
  readonly contentType: string;
  /** Body of the request. */
  readonly body: Buffer;
}

/** Properties of a relayed connection. */
export interface MeterContext {
  /** ID of the handshake, which is also the session of every response on this connection. */
  readonly id: string;
  /** The provider's name of the model. */
  readonly model: string;
  /** Model name as the client wrote it. */
  readonly clientModel: string;
  /** Metadata of the model. */
  readonly info: ModelInfo;
  /** Privacy that the connection requires. */
  readonly privacy: Privacy;
  /** Query of the client's URL, without credentials. */
  readonly query: URLSearchParams;
  /** Settings that the client's credential determines, which the client may not exceed. */
  readonly session: Opt<JsonObject>;
}

/**
 * Reads the messages of one connection in both directions, in order. The host calls it before a
 * message is forwarded. It returns the message to forward, or null to drop it. Returning undefined
 * forwards the message unchanged.
 *
 * The client receives the error of a `fail()` in `readClientMessage`, and the message is not
 * forwarded. A fault in `readProviderMessage` ends the connection with this fault. Any other error
 * ends it as an internal error.
 */
export interface SocketMeter {
  /**
   * Encodes the message that the provider receives first, which applies `session` of the context.
   * Called once for each connection, and not for calls. If it throws, the connection is closed with
   * the fault. Default: no message.
   */
  encodeOpening?(): Opt<SocketMessage>;
  /** Reads a message of the client. */
  readClientMessage(message: SocketMessage): Opt<SocketMessage | null>;
  /** Reads a message of the provider. */
  readProviderMessage(message: SocketMessage): Opt<SocketMessage | null>;
  /** Encodes the message that cancels a running response at the provider. */
  encodeCancel(response: MeteredResponse): Opt<SocketMessage>;
}

/** Receives the findings of a meter. */
export interface MeterSink {
  /**
   * Begins a response. The host reserves it, and holds the message that is being read until the
   * reservation is durable.
   *
   * If the reservation is rejected while a client's message is read, the message is dropped and the
   * client receives the error. The provider does not receive the message. If the reservation is
   * rejected while a provider's message is read, the response is already running. The host then
   * sends `encodeCancel` to the provider and the error to the client. The usage that the provider
   * reports for the response is still billed.
   */
  beginResponse(of?: ResponseStart): MeteredResponse;
  /** Throws the fault that a request for this model would get. */
  checkModel(model: string): void;
}

/** Properties of a response at its beginning. */
export interface ResponseStart {
  /**
   * Facts for calculating the reservation, such as `maxOutput`. Default: the facts in `RelayInput`.
   */
  facts?: Opt<RequestFacts>;
  /** Bytes of text that the provider reads for the response, for the estimate of its input. */
  inputBytes?: Opt<number>;
  /** Model that is billed, if it is not the model of the connection. */
  model?: Opt<string>;
  /**
   * The request in the common form, for `inspect` hooks. If unset, `inspect` hooks are not called.
   */
  request?: Opt<ModelRequest>;
}

/** One response of a relayed connection. Exactly one of its `report…` methods ends it. */
export interface MeteredResponse {
  /**
   * `reserving`: the reservation is not durable yet. `running`: the response is open. `ended`: the
   * response was refused or has ended.
   */
  readonly state: "reserving" | "running" | "ended";
  /** Reports that the provider accepted the response, with its ID. */
  reportStart(id: string): void;
  /** Reports content. `bytes` is the length of the text. A truncated response is billed by it. */
  reportContent(bytes?: number): void;
  /**
   * Reports the current usage of the response, as derived from the messages, such as seconds of
   * audio. If the response ends without a usage report, it is billed by this value as an estimate.
   * A later value replaces an earlier value.
   */
  reportEstimate(usage: Usage): void;
  /** Reports an event for `watch` hooks. */
  reportEvent(event: ModelEvent): void;
  /** Reports usage counts of the provider. */
  reportUsage(seen: UsageReport): void;
  /**
   * Ends the response. The message that is being read is held until the settle row is durable, for
   * up to 2 s.
   */
  reportFinish(reason: FinishReason): void;
  /**
   * Ends the response as failed or canceled. The response is billed for the usage and content that
   * were reported.
   */
  reportFailure(fault: Fault): void;
}
