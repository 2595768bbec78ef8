// Relays messages between one client's socket and one provider's socket. The meter reads each
// message before it is forwarded. A message waits while a response that it begins or ends is
// written to the ledger.
import { satisfies } from "../../catalog/data-policy.ts";
import { matchesPattern } from "../../catalog/model-names.ts";
import { fail, getFault, type Fault } from "../../model/error.ts";
import type {
  MeteredResponse,
  MeterSink,
  ResponseStart,
  SocketHalf,
  SocketMessage,
  SocketMeter,
} from "../../plugin/socket.ts";
import type { HostExchange } from "../exchange/exchange.ts";
import { effectivePolicyOf } from "../privacy/candidate-policy.ts";
import { toClientFault } from "../upstream/provider-failure.ts";
import { wallClock } from "../../lib/time/wall-clock.ts";
import { MessageLane } from "./message-lane.ts";
import type { OpenRelay } from "./open-relay.ts";
import {
  otherModel,
  RelayedResponse,
  type RelayTarget,
  type ResponseOwner,
} from "./relayed-response.ts";

/** The client's connection, as a relay uses it. */
export interface RelayClient {
  readonly isClosing: boolean;
  send(message: SocketMessage): void;
  whenWritable(): Promise<void> | undefined;
  pause(reason: string): void;
  resume(reason: string): void;
  close(code: number, reason: string): void;
}

export interface RelayEvents {
  /** A response was settled, or refused. */
  onSettled(x: HostExchange): void;
  /** Called when no response is running on the connection. */
  onIdle(): void;
  /** The provider's connection is closed, and every response was settled. */
  onEnd(): void;
}

const NORMAL_CLOSURE = 1000;
const POLICY = 1008;
const INTERNAL = 1011;
/** Bytes that may wait to be sent to the provider before the client is paused. */
const MAX_BUFFERED_BYTES = 1024 * 1024;
/** Time in milliseconds within which a provider may report the usage of a canceled response. */
const CANCEL_TIMEOUT_MS = 1_000;
/** Close codes of a provider that are forwarded to the client, because they inform the client. */
const PASSED_CODES: ReadonlySet<number> = new Set([1000, 1001, 1007, 1008, 1009, 1011, 1012, 1013]);

export class RelaySession implements MeterSink, ResponseOwner {
  readonly #target: RelayTarget;
  readonly #provider: OpenRelay["provider"];
  readonly #client: RelayClient;
  readonly #events: RelayEvents;
  readonly #half: SocketHalf;
  readonly #meter: SocketMeter;
  readonly #open = new Set<RelayedResponse>();
  /** Number of settled responses whose last message is not yet forwarded. */
  #forwarding = 0;
  readonly #fromClient = new MessageLane({
    read: (message) => this.#readClient(message),
    setPaused: (isPaused) =>
      isPaused ? this.#client.pause("relay") : this.#client.resume("relay"),
  });
  readonly #fromProvider = new MessageLane({
    read: (message) => this.#readProvider(message),
    setPaused: (isPaused) => (isPaused ? this.#provider.pause() : this.#provider.resume()),
  });
  /**
   * Whether a message of the client is being read, and the responses that the message begins and
   * ends.
   */
  #isReadingClient = false;
  #begun: RelayedResponse[] = [];
  #ended: RelayedResponse[] = [];
  /** Fault that closes the connection as soon as the canceled responses have ended. */
  #closing: Fault | undefined;
  #isMuted = false;
  #isClientGone = false;
  #isProviderGone = false;
  #isOver = false;

  constructor({ target, provider }: OpenRelay, client: RelayClient, events: RelayEvents) {
    this.#target = target;
    this.#provider = provider;
    this.#client = client;
    this.#events = events;
    const { handshake, candidate, model } = target;
    this.#half = target.socket.frontend.protocol!.socket!;
    this.#meter = this.#half.createMeter(this, {
      id: handshake.id,
      model: candidate.model,
      clientModel: model,
      info: candidate.info,
      privacy: handshake.privacy,
      query: handshake.query,
      session: target.session,
    });
  }

  /** Number of responses that run. */
  get running(): number {
    return this.#open.size;
  }

  /** Whether a response is running, or the message that ends one is not yet forwarded. */
  get isBusy(): boolean {
    return this.#open.size + this.#forwarding > 0;
  }

  /** Applies the settings that the client's credential determines. */
  sendOpening(): void {
    try {
      const message = this.#meter.encodeOpening?.();
      if (message !== undefined && message !== null) this.#sendToProvider(message);
    } catch (problem) {
      this.#endWith(problem);
    }
  }

  /** Begins to read the provider's messages. */
  start(): void {
    const provider = this.#provider;
    provider.on("message", (data, isBinary) =>
      this.#fromProvider.push(isBinary ? (data as Buffer) : (data as Buffer).toString()),
    );
    provider.on("error", () => {});
    provider.on("close", (code, reason) => void this.#onProviderClose(code, reason));
    if (provider.readyState !== provider.OPEN)
      void this.#onProviderClose(INTERNAL, Buffer.alloc(0));
    else provider.resume();
  }

  /** Handles a message of the client. */
  receive(message: SocketMessage): void {
    this.#fromClient.push(message);
  }

  /** Called when the client's connection is closed. */
  onClientClose(): void {
    this.#isClientGone = true;
    // A response that was canceled because of a policy is billed exactly if its end still arrives.
    if (this.#closing && this.#open.size > 0 && !this.#isProviderGone)
      setTimeout(() => this.#end(CLIENT_GONE), CANCEL_TIMEOUT_MS).unref();
    else this.#end(CLIENT_GONE);
  }

  /** Sends an error, cancels running responses, and closes the connection. */
  closeWith(fault: Fault, code: number): void {
    this.#closing ??= fault;
    this.sendFault(fault);
    for (const response of this.#open) this.#cancel(response);
    this.#client.close(code, fault.message);
  }

  /** Sends an error to the client. `message`: the client's message that caused it. */
  sendFault(fault: Fault, message?: SocketMessage): void {
    sendRelayFault(this.#target.handshake, this.#half, this.#client, fault, message);
  }

  beginResponse(start: ResponseStart = {}): MeteredResponse {
    const response = new RelayedResponse(this.#target, start, this);
    this.#open.add(response);
    this.#begun.push(response);
    response.begin(this.#isReadingClient);
    return response;
  }

  checkModel(model: string): void {
    const { handshake, candidate } = this.#target;
    const { info, mounted } = otherModel(this.#target, model);
    const names = [model, `${candidate.provider}/${model}`];
    const allowed = handshake.identity?.models;
    if (allowed && !allowed.some((pattern) => names.some((name) => matchesPattern(pattern, name))))
      fail("forbidden", `This key may not use the model ${model}.`, {
        code: "model_not_allowed",
        param: "model",
      });
    const policy = effectivePolicyOf(mounted, info, wallClock());
    if (handshake.privacy !== "off" && !satisfies(handshake.privacy, policy))
      fail("privacy", `${model} does not fulfill the data policy of this connection.`, {
        code: "zdr_unavailable",
        param: "model",
      });
    const { account } = handshake.state.admission;
    const limits = [...(handshake.identity?.limits ?? []), ...(account?.limits ?? [])];
    if (!info.price && limits.some(({ unit }) => unit === "nano_usd"))
      fail("quota", `${model} has no known price, and this key or its account has a budget.`, {
        code: "unpriced_model",
        param: "model",
      });
  }

  onRefused(response: RelayedResponse, fault: Fault, isRunning: boolean): void {
    // If a client's message requested the refused response, the refusal is reported when the
    // message is dropped.
    if (isRunning) this.#stop(response, fault);
  }

  onStopped(response: RelayedResponse, fault: Fault): void {
    this.#isMuted = true;
    this.#stop(response, fault);
  }

  onEnding(response: RelayedResponse): void {
    this.#ended.push(response);
  }

  onEnded(response: RelayedResponse): void {
    this.#open.delete(response);
    this.#events.onSettled(response.exchange);
    // The client first receives the message that ends the response.
    const reading = this.#isClientGone || this.#isOver ? undefined : this.#fromProvider.whenRead();
    if (!reading) return this.#onIdle();
    this.#forwarding++;
    void reading.then(() => {
      this.#forwarding--;
      this.#onIdle();
    });
  }

  /** Called when no response is running. Ends the tasks that wait for this. */
  #onIdle(): void {
    if (this.isBusy) return;
    if (this.#closing) this.#close(this.#closing);
    this.#events.onIdle();
    if (this.#isClientGone) this.#end(CLIENT_GONE);
    if (this.#isOver) this.#finish();
  }

  #readClient(message: SocketMessage): Promise<void> | undefined {
    if (this.#closing || this.#isOver) return undefined;
    this.#isReadingClient = true;
    const begun: RelayedResponse[] = (this.#begun = []);
    let out: SocketMessage | null | undefined;
    try {
      out = this.#meter.readClientMessage(message);
    } catch (problem) {
      const fault = getFault(problem);
      if (!fault) return this.#fail(problem);
      this.#drop(begun, fault);
      this.sendFault(fault, message);
      return undefined;
    }
    const forwarded = out === undefined ? message : out;
    if (begun.length > 0) return this.#forwardReserved(begun, forwarded, message);
    if (forwarded !== null) this.#sendToProvider(forwarded);
    return undefined;
  }

  /** Forwards a message when the responses that it asks for are reserved. */
  async #forwardReserved(
    begun: readonly RelayedResponse[],
    forwarded: SocketMessage | null,
    message: SocketMessage,
  ): Promise<void> {
    for (const response of begun) await response.reserved;
    const refusal = begun.find((response) => response.refusal)?.refusal;
    if (refusal) {
      this.#drop(begun, refusal);
      return this.sendFault(refusal, message);
    }
    if (this.#closing || this.#isOver) return this.#drop(begun, CLIENT_GONE);
    if (forwarded === null) return;
    for (const response of begun) response.isSent = true;
    this.#sendToProvider(forwarded);
  }

  /** Ends responses that were never forwarded to the provider. */
  #drop(begun: readonly RelayedResponse[], fault: Fault): void {
    for (const response of begun) if (response.state !== "ended") response.reportFailure(fault);
  }

  #readProvider(message: SocketMessage): Promise<void> | undefined {
    if (this.#isOver) return undefined;
    this.#isReadingClient = false;
    const begun: RelayedResponse[] = (this.#begun = []);
    const ended: RelayedResponse[] = (this.#ended = []);
    let out: SocketMessage | null | undefined;
    try {
      out = this.#meter.readProviderMessage(message);
    } catch (problem) {
      return this.#endWith(problem);
    }
    const forwarded = out === undefined ? message : out;
    return begun.length + ended.length > 0
      ? this.#forwardRecorded(begun, ended, forwarded)
      : this.#sendToClient(forwarded);
  }

  /** Forwards a message after the ledger has recorded the responses that it begins and ends. */
  async #forwardRecorded(
    begun: readonly RelayedResponse[],
    ended: readonly RelayedResponse[],
    forwarded: SocketMessage | null,
  ): Promise<void> {
    for (const response of begun) await response.reserved;
    for (const response of ended) await response.settled;
    await this.#sendToClient(forwarded);
  }

  #sendToClient(message: SocketMessage | null): Promise<void> | undefined {
    if (message === null || this.#isMuted || this.#client.isClosing) return undefined;
    this.#client.send(message);
    return this.#client.whenWritable();
  }

  #sendToProvider(message: SocketMessage): void {
    const provider = this.#provider;
    if (provider.readyState !== provider.OPEN) return;
    provider.send(message, { binary: typeof message !== "string" }, () => {
      if (provider.bufferedAmount <= MAX_BUFFERED_BYTES) this.#client.resume("provider");
    });
    if (provider.bufferedAmount > MAX_BUFFERED_BYTES) this.#client.pause("provider");
  }

  /** Ends a response that the provider runs, and then the connection. */
  #stop(response: RelayedResponse, fault: Fault): void {
    this.#closing ??= fault;
    this.#cancel(response);
    this.sendFault(fault);
    setTimeout(() => this.#close(fault), CANCEL_TIMEOUT_MS).unref();
  }

  #cancel(response: RelayedResponse): void {
    const message = this.#meter.encodeCancel(response);
    if (message !== undefined) this.#sendToProvider(message);
  }

  #close(fault: Fault): void {
    if (!this.#isClientGone) this.#client.close(POLICY, fault.message);
  }

  /** Ends the connection because of a fault of the meter, or because of a defect. */
  #endWith(problem: unknown): undefined {
    const fault = getFault(problem);
    if (!fault) return this.#fail(problem);
    this.closeWith(fault, fault.kind === "upstream" ? INTERNAL : POLICY);
    return undefined;
  }

  /** Ends the connection because of a defect. */
  #fail(err: unknown): undefined {
    const { gen } = this.#target.handshake.state;
    gen.log.error({ request: this.#target.handshake.id, err }, "socket meter failed");
    this.#client.close(INTERNAL, "Internal error.");
    this.#end(DEFECT);
    return undefined;
  }

  async #onProviderClose(code: number, reason: Buffer): Promise<void> {
    this.#isProviderGone = true;
    // The client receives everything that came before.
    await this.#fromProvider.whenRead();
    const { gen } = this.#target.handshake.state;
    const isPassed = PASSED_CODES.has(code) || (code >= 3000 && code <= 4999);
    const text = reason.length > 0 ? gen.mask(reason.toString()) : "";
    this.#client.close(
      isPassed ? code : INTERNAL,
      text !== "" ? text : isPassed ? "" : "The connection to the provider was lost.",
    );
    this.#end(PROVIDER_GONE);
  }

  /** Ends the provider's connection. Open responses are billed by their relayed content. */
  #end(fault: Fault): void {
    if (this.#isOver) return;
    this.#isOver = true;
    const provider = this.#provider;
    if (provider.readyState === provider.OPEN) {
      provider.resume();
      provider.close(NORMAL_CLOSURE);
    } else provider.terminate();
    for (const response of this.#open) response.cut(fault);
    if (this.#open.size === 0) this.#finish();
  }

  #isFinished = false;
  #finish(): void {
    if (this.#isFinished) return;
    this.#isFinished = true;
    this.#events.onEnd();
  }
}

/** Sends an error in the protocol of the connection, which may require that it is closed. */
export function sendRelayFault(
  { id, state: { gen } }: HostExchange,
  half: SocketHalf,
  client: RelayClient,
  fault: Fault,
  message?: SocketMessage,
): void {
  const shown = toClientFault(gen, fault);
  const encoded = half.encodeFault(shown, { id, message });
  if (encoded.message !== undefined && encoded.message !== null) client.send(encoded.message);
  if (encoded.close !== undefined && encoded.close !== null)
    client.close(encoded.close, shown.message);
}

const CLIENT_GONE: Fault = { kind: "canceled", message: "The client closed the connection." };
const PROVIDER_GONE: Fault = {
  kind: "upstream",
  code: "upstream_closed",
  message: "The provider closed the connection before the response was complete.",
};
const DEFECT: Fault = { kind: "internal", message: "Internal error." };
