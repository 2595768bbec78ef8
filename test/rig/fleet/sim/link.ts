// A connection between a gateway and the database, in place of a TCP socket.
import { EventEmitter } from "node:events";
import type { Message } from "./protocol.ts";
import type { Process, VirtualTime } from "./virtual-time.ts";

/** Peer of a connection. */
interface Listener {
  readonly time: VirtualTime;
  connect(session: Session): void;
  send(session: Session, bytes: Buffer): void;
  leave(session: Session): void;
}

/** A gateway's network. While it is cut, everything is delivered late. */
export class Link {
  readonly owner: Process;
  cut = false;
  /** Deliveries that wait for the network. */
  readonly held: (() => void)[] = [];

  constructor(owner: Process) {
    this.owner = owner;
  }
}

/** The driver's end of a connection. */
export class Socket extends EventEmitter {
  readonly server: Listener;
  readonly link: Link;
  writable = true;
  readonly session: Session;

  constructor(server: Listener, link: Link) {
    super();
    this.server = server;
    this.link = link;
    this.session = new Session(this);
  }

  connect(): this {
    this.server.connect(this.session);
    return this;
  }

  write(bytes: Buffer, done?: () => void): boolean {
    this.server.send(this.session, Buffer.from(bytes));
    done?.();
    return true;
  }

  end(): this {
    this.writable = false;
    this.server.leave(this.session);
    this.closed();
    return this;
  }

  destroy(error?: Error): this {
    this.writable = false;
    this.server.leave(this.session);
    this.closed(error);
    return this;
  }

  closed(error?: Error): void {
    this.writable = false;
    this.server.time.later(
      0,
      () => {
        if (error) this.emit("error", error);
        this.emit("close");
      },
      this.link.owner,
    );
  }

  setNoDelay = (): this => this;
  setKeepAlive = (): this => this;
  ref = (): this => this;
  unref = (): this => this;
  cork(): void {}
  uncork(): void {}
}

/** The server's end of a connection. */
export class Session {
  readonly socket: Socket;
  welcome = false;
  /** The client's end is open. */
  open = true;
  /** The server's end is open. */
  serves = true;
  rest: Buffer = Buffer.alloc(0);
  group: Message[] = [];
  arrives = 0;
  returns = 0;
  /** The server reads nothing of it before this moment. */
  notBefore = 0;
  constructor(socket: Socket) {
    this.socket = socket;
  }
}
