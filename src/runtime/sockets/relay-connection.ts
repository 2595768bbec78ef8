// A WebSocket of a client that is relayed to the socket of a provider. It keeps the config
// generation of its handshake, because that generation owns the provider's connection.
import { getFault, type Fault } from "../../model/error.ts";
import type { SocketMessage } from "../../plugin/socket.ts";
import type { HostExchange } from "../../pipeline/exchange/exchange.ts";
import type { MountedSocket } from "../../pipeline/exchange/mounted.ts";
import type { OpenRelay } from "../../pipeline/sockets/open-relay.ts";
import { RelaySession, sendRelayFault } from "../../pipeline/sockets/relay-session.ts";
import { CLOSE_CODES, type ClientSocket } from "./client-socket.ts";
import type { SocketDescription } from "./live-sockets.ts";
import type { OpenSocket } from "./open-sockets.ts";

export interface RelayConnectionOptions {
  readonly socket: ClientSocket;
  readonly handshake: HostExchange;
  readonly mounted: MountedSocket;
  /**
   * The provider's socket. Undefined if the first message of the client determines the provider.
   */
  readonly relay: OpenRelay | undefined;
  open(first: SocketMessage): Promise<OpenRelay>;
  checkKey(): Promise<Fault | undefined>;
  /** Called when a response was settled. */
  onSettled(x: HostExchange): void;
  /** Called when the client's connection is closed. */
  onClosed(of: OpenSocket): void;
  /** Called when the connection and its responses have ended. */
  onEnd(): void;
}

export class RelayConnection implements OpenSocket {
  readonly socket: ClientSocket;
  readonly frontend: string;
  readonly id: string;
  readonly account: string | undefined;
  readonly #options: RelayConnectionOptions;
  #session: RelaySession | undefined;
  #target: { readonly model: string; readonly provider: string } | undefined;
  /** Messages that arrived before the provider's socket was open. */
  #early: SocketMessage[] | undefined;
  #notice: "draining" | "expired" | undefined;

  constructor(options: RelayConnectionOptions) {
    this.#options = options;
    this.socket = options.socket;
    this.frontend = options.handshake.frontend;
    this.id = options.handshake.id;
    this.account = options.handshake.state.admission.account?.path;
  }

  get running(): number {
    return this.#session?.running ?? 0;
  }

  get isBusy(): boolean {
    return this.#session?.isBusy === true || this.#early !== undefined;
  }

  describe(): SocketDescription {
    const { privacy } = this.#options.handshake;
    return { type: "relay", model: this.#target?.model, provider: this.#target?.provider, privacy };
  }

  open(): void {
    this.socket.open({
      onMessage: (message) => this.#onMessage(message),
      onClose: () => this.#onClose(),
    });
    const { relay } = this.#options;
    if (relay) this.#start(relay);
  }

  checkKey(): Promise<Fault | undefined> {
    return this.#options.checkKey();
  }

  finish(notice: "draining" | "expired"): void {
    this.#notice ??= notice;
    if (this.isBusy || this.socket.isClosing) return;
    this.socket.close(
      CLOSE_CODES.goingAway,
      this.#notice === "draining" ? "The gateway is shutting down." : "The connection expired.",
    );
  }

  closeWith(fault: Fault, code: number): void {
    if (this.#session) return this.#session.closeWith(fault, code);
    this.#sendFault(fault);
    this.socket.close(code, fault.message);
  }

  #onMessage(message: SocketMessage): void {
    if (this.#session) return this.#session.receive(message);
    if (this.#early) return void this.#early.push(message);
    this.#early = [message];
    this.socket.pause("opening");
    void this.#open(message);
  }

  async #open(first: SocketMessage): Promise<void> {
    try {
      const relay = await this.#options.open(first);
      const early = this.#early!;
      this.#early = undefined;
      this.#start(relay);
      for (const message of early) this.#session!.receive(message);
      this.socket.resume("opening");
    } catch (problem) {
      this.#early = undefined;
      const fault = getFault(problem) ?? this.#unexpected(problem);
      this.#sendFault(fault);
      this.socket.close(CLOSE_CODES.policy, fault.message);
      if (this.socket.isClosed) this.#options.onEnd();
    }
  }

  #start(relay: OpenRelay): void {
    const session = new RelaySession(relay, this.socket, {
      onSettled: (x) => this.#options.onSettled(x),
      onIdle: () => {
        if (this.#notice) this.finish(this.#notice);
      },
      onEnd: () => this.#options.onEnd(),
    });
    this.#session = session;
    const { candidate, model } = relay.target;
    this.#target = { model, provider: candidate.provider };
    session.sendOpening();
    session.start();
    if (this.socket.isClosed) session.onClientClose();
  }

  #sendFault(fault: Fault): void {
    const { handshake, mounted } = this.#options;
    sendRelayFault(handshake, mounted.frontend.protocol!.socket!, this.socket, fault);
  }

  #unexpected(err: unknown): Fault {
    const { gen } = this.#options.handshake.state;
    gen.log.error({ socket: this.id, frontend: this.frontend, err }, "opening relay failed");
    return { kind: "internal", message: "Internal error." };
  }

  #onClose(): void {
    this.#options.onClosed(this);
    if (this.#session) this.#session.onClientClose();
    else if (!this.#early) this.#options.onEnd();
  }
}
