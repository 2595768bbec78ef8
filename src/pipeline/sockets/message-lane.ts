// The messages of one direction of a socket, which are read one after the other. A message that can
// be read without waiting is read immediately.
import type { SocketMessage } from "../../plugin/socket.ts";

/** Messages and bytes that may wait before the sender is paused. */
const MAX_WAITING = 16;
const MAX_WAITING_BYTES = 1024 * 1024;

export interface LaneOwner {
  /** Reads a message. The next message is read when the promise resolves. It never rejects. */
  read(message: SocketMessage): Promise<void> | undefined;
  /** Stops or resumes the sender. */
  setPaused(isPaused: boolean): void;
}

export class MessageLane {
  readonly #owner: LaneOwner;
  readonly #waiting: SocketMessage[] = [];
  #busy: Promise<void> | undefined;
  #waitingBytes = 0;
  #isPaused = false;

  constructor(owner: LaneOwner) {
    this.#owner = owner;
  }

  push(message: SocketMessage): void {
    if (!this.#busy) return this.#start(this.#owner.read(message));
    this.#waiting.push(message);
    this.#waitingBytes += message.length;
    if (this.#waiting.length >= MAX_WAITING || this.#waitingBytes >= MAX_WAITING_BYTES)
      this.#setPaused(true);
  }

  /**
   * Resolves when every message that has arrived has been read. Undefined if all have been read.
   */
  whenRead(): Promise<void> | undefined {
    return this.#busy;
  }

  #start(reading: Promise<void> | undefined): void {
    if (reading) this.#busy = this.#readOn(reading);
  }

  async #readOn(reading: Promise<void>): Promise<void> {
    await reading;
    for (let next = this.#waiting.shift(); next !== undefined; next = this.#waiting.shift()) {
      this.#waitingBytes -= next.length;
      const more = this.#owner.read(next);
      if (more) await more;
    }
    this.#busy = undefined;
    this.#setPaused(false);
  }

  #setPaused(isPaused: boolean): void {
    if (this.#isPaused === isPaused) return;
    this.#isPaused = isPaused;
    this.#owner.setPaused(isPaused);
  }
}
