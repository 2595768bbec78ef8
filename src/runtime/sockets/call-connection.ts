// A call whose audio does not pass through the gateway. The client has no socket. The provider's socket
// observes the call, and the call is ended where a socket would be closed.
import type { Fault } from "../../model/error.ts";
import type { SocketMessage } from "../../plugin/socket.ts";
import type { HostExchange } from "../../pipeline/exchange/exchange.ts";
import { RelaySession, type RelayClient } from "../../pipeline/sockets/relay-session.ts";
import type { StartedCall } from "../../pipeline/sockets/start-call.ts";
import type { SocketDescription } from "./live-sockets.ts";
import type { OpenSocket, TrackedSocket } from "./open-sockets.ts";

export interface CallConnectionOptions {
  readonly call: StartedCall;
  checkKey(): Promise<Fault | undefined>;
  /** Called when a response was settled. */
  onSettled(x: HostExchange): void;
  /** Called when the call is ended. */
  onClosed(of: OpenSocket): void;
  /** Called when the call and its connections have ended. */
  onEnd(): void;
}

export class CallConnection implements OpenSocket {
  readonly socket: CallClient;
  readonly frontend: string;
  readonly id: string;
  readonly account: string | undefined;
  readonly checkKey: () => Promise<Fault | undefined>;
  readonly #session: RelaySession;
  readonly #description: SocketDescription;
  #isEnding = false;

  constructor({ call, checkKey, onSettled, onClosed, onEnd }: CallConnectionOptions) {
    const { handshake, candidate, model } = call.relay.target;
    this.#description = {
      type: "call",
      model,
      provider: candidate.provider,
      privacy: handshake.privacy,
    };
    this.frontend = handshake.frontend;
    this.id = handshake.id;
    this.account = handshake.state.admission.account?.path;
    this.checkKey = checkKey;
    this.socket = new CallClient(handshake.identity!.id, () => {
      onClosed(this);
      void call.hangUp();
      this.#session.onClientClose();
    });
    this.#session = new RelaySession(call.relay, this.socket, {
      onSettled,
      onIdle: () => {
        if (this.#isEnding) this.socket.close();
      },
      onEnd,
    });
  }

  get running(): number {
    return this.#session.running;
  }

  get isBusy(): boolean {
    return this.running > 0;
  }

  describe(): SocketDescription {
    return this.#description;
  }

  open(): void {
    this.#session.start();
  }

  finish(): void {
    this.#isEnding = true;
    if (!this.isBusy) this.socket.close();
  }

  closeWith(fault: Fault, code: number): void {
    this.#session.closeWith(fault, code);
  }
}

/** Stands for the client of a call. Messages to it are dropped. */
class CallClient implements TrackedSocket, RelayClient {
  readonly key: string;
  readonly isPaused = false;
  readonly pauseReasons: readonly string[] = [];
  readonly bytesIn = 0;
  readonly bufferedBytes = 0;
  readonly hasPartialMessage = false;
  partialSince: number | undefined;
  isClosing = false;
  messagesIn = 0;
  bytesOut = 0;
  hasReceivedData = true;
  readonly #onClose: () => void;

  constructor(key: string, onClose: () => void) {
    this.key = key;
    this.#onClose = onClose;
  }

  send(message: SocketMessage): void {
    this.bytesOut += message.length;
  }

  whenWritable(): undefined {}
  pause(): void {}
  resume(): void {}
  ping(): void {}

  close(): void {
    if (this.isClosing) return;
    this.isClosing = true;
    this.#onClose();
  }

  terminate(): void {
    this.close();
  }
}
