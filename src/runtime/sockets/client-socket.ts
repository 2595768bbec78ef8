// One WebSocket of a client. It limits the data that the client may send and that is kept, and
// applies backpressure in both directions. Compression is not used, because a few compressed bytes
// can expand to megabytes.
import type { Socket } from "node:net";
import type { WebSocket } from "ws";
import { isAscii } from "node:buffer";
import type { MemoryBudget } from "../../pipeline/admission/memory-budget.ts";
import type { SocketMessage } from "../../plugin/socket.ts";

/** Close codes of RFC 6455 that the gateway sends. */
export const CLOSE_CODES = {
  /** The gateway shuts down, or the connection reached its maximum age. */
  goingAway: 1001,
  /** The key was revoked, its budget is spent, or a bound was exceeded. */
  policy: 1008,
  internal: 1011,
  overloaded: 1013,
} as const;

/** Steps in bytes by which memory is reserved for a message that arrives. */
const RESERVATION_STEP = 64 * 1024;
/** Size in bytes of the head of a control frame from a client: 2, and 4 for the mask. */
const CONTROL_HEAD_BYTES = 6;
/** Bytes that a client may send after the gateway has closed the connection. */
const MAX_BYTES_AFTER_CLOSE = 256 * 1024;
/** Maximum bytes of the reason in a close frame. */
const MAX_REASON_BYTES = 123;

export interface ClientSocketEvents {
  onMessage(message: SocketMessage): void;
  onClose(): void;
}

export class ClientSocket {
  readonly #ws: WebSocket;
  readonly #raw: Socket;
  readonly #memory: MemoryBudget;
  readonly #key: string;
  #events: ClientSocketEvents | undefined;
  /** Bytes that arrived and are not part of a complete message. */
  #partialBytes = 0;
  /** Time when the first of these bytes arrived, by the sweep's clock. */
  partialSince: number | undefined;
  #reservedBytes = 0;
  readonly #pauses = new Set<string>();
  #writableWaiters: (() => void)[] = [];
  isClosing = false;
  isClosed = false;
  messagesIn = 0;
  bytesIn = 0;
  bytesOut = 0;
  /** Whether any data has arrived since the last ping. */
  hasReceivedData = true;

  constructor(ws: WebSocket, raw: Socket, memory: MemoryBudget, key: string) {
    this.#ws = ws;
    this.#raw = raw;
    this.#memory = memory;
    this.#key = key;
  }

  /** Begins to read. */
  open(events: ClientSocketEvents): void {
    this.#events = events;
    // Runs before the parser, so that the memory is reserved before it keeps the bytes.
    this.#raw.prependListener("data", this.#onData);
    this.#ws.on("message", this.#onMessage);
    this.#ws.on("ping", (data) => this.#onPing(data));
    this.#ws.on("pong", (data) => this.#onControl(data));
    // The parser has closed the connection with the code that the specification demands.
    this.#ws.on("error", () => {});
    this.#ws.on("close", () => this.#onClose());
  }

  readonly #onData = (chunk: Buffer): void => {
    this.hasReceivedData = true;
    this.bytesIn += chunk.length;
    this.#partialBytes += chunk.length;
    if (this.isClosing) {
      if (this.#partialBytes > MAX_BYTES_AFTER_CLOSE) this.terminate();
      return;
    }
    while (this.#partialBytes > this.#reservedBytes + RESERVATION_STEP) {
      if (!this.#memory.tryReserve(this.#key, RESERVATION_STEP, this.#reservedBytes))
        return this.close(CLOSE_CODES.overloaded, "The gateway's buffer memory is full.");
      this.#reservedBytes += RESERVATION_STEP;
    }
  };

  readonly #onMessage = (data: unknown, isBinary: boolean): void => {
    this.#partialBytes = 0;
    this.partialSince = undefined;
    this.#releaseMemory();
    if (this.isClosing) return;
    this.messagesIn++;
    const bytes = data as Buffer;
    this.#events!.onMessage(isBinary ? bytes : bytes.toString(isAscii(bytes) ? "latin1" : "utf8"));
  };

  /** Answers a ping if the client reads the answers. */
  #onPing(data: Buffer): void {
    this.#onControl(data);
    if (!this.isClosing && !this.#raw.writableNeedDrain) this.#ws.pong(data);
  }

  #onControl(data: Buffer): void {
    this.#partialBytes = Math.max(0, this.#partialBytes - data.length - CONTROL_HEAD_BYTES);
    if (this.#partialBytes === 0) this.partialSince = undefined;
  }

  get hasPartialMessage(): boolean {
    return this.#partialBytes > 0;
  }

  get isPaused(): boolean {
    return this.#pauses.size > 0;
  }

  /** Why no messages are read from the client. */
  get pauseReasons(): readonly string[] {
    return [...this.#pauses];
  }

  /** Bytes that were sent and that the client has not received. */
  get bufferedBytes(): number {
    return this.#raw.writableLength;
  }

  get key(): string {
    return this.#key;
  }

  /** Sends a message. If the client does not read, no further message of the client is read. */
  send(message: SocketMessage): void {
    if (this.isClosing) return;
    this.bytesOut += message.length;
    this.#ws.send(message, { binary: typeof message !== "string" });
    if (!this.#raw.writableNeedDrain || this.#pauses.has("slow")) return;
    this.pause("slow");
    this.#raw.once("drain", () => {
      this.resume("slow");
      for (const go of this.#writableWaiters.splice(0)) go();
    });
  }

  /**
   * Resolves when the client has read the sent data. Undefined if the client can receive more data
   * now.
   */
  whenWritable(): Promise<void> | undefined {
    if (this.isClosed || !this.#pauses.has("slow")) return undefined;
    return new Promise((resolve) => this.#writableWaiters.push(resolve));
  }

  /** Stops reading messages until `resume` is called with the same reason. */
  pause(reason: string): void {
    this.#pauses.add(reason);
    this.#ws.pause();
  }

  resume(reason: string): void {
    if (this.#pauses.delete(reason) && this.#pauses.size === 0) this.#ws.resume();
  }

  ping(): void {
    this.hasReceivedData = false;
    if (!this.isClosing && !this.#raw.writableNeedDrain) this.#ws.ping();
  }

  /** Closes the connection. Messages that were sent before are still delivered. */
  close(code: number, reason: string): void {
    if (this.isClosing) return;
    this.isClosing = true;
    // The close frame of the client must be read.
    this.#pauses.clear();
    // Writes whole characters only: a client must reject a reason that is not UTF-8.
    const bytes = Buffer.alloc(MAX_REASON_BYTES);
    const { written } = new TextEncoder().encodeInto(reason, bytes);
    this.#ws.close(code, bytes.subarray(0, written));
    this.#ws.resume();
  }

  terminate(): void {
    this.isClosing = true;
    this.#ws.terminate();
  }

  #onClose(): void {
    if (this.isClosed) return;
    this.isClosed = this.isClosing = true;
    this.#releaseMemory();
    for (const go of this.#writableWaiters.splice(0)) go();
    this.#events?.onClose();
  }

  #releaseMemory(): void {
    if (this.#reservedBytes > 0) this.#memory.release(this.#key, this.#reservedBytes);
    this.#reservedBytes = 0;
  }
}
