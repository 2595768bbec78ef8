// Pings that are written while a stream is silent. See `ServerHalf.ping` in src/plugin/protocol.ts.
import type { ServerHalf } from "../../plugin/protocol.ts";

export class Pings {
  readonly #ping: string;
  /** Prefix that the first ping of a silence writes. The next event then omits it. */
  readonly #opening: string;
  #isOpen = false;

  constructor({ ping, pingPrefix = "" }: Pick<ServerHalf<"chat">, "ping" | "pingPrefix">) {
    this.#ping = ping;
    this.#opening = pingPrefix;
  }

  /** Whether this protocol has pings. */
  get isSupported(): boolean {
    return this.#ping !== "";
  }

  /** Returns the text of the next ping. */
  next(): string {
    if (this.#isOpen || this.#opening === "") return this.#ping;
    this.#isOpen = true;
    return this.#opening + this.#ping;
  }

  /** Whether a prefix was written, so that `stripOpening` must be called for the next event. */
  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** Returns the event without the prefix that a ping has already written. */
  stripOpening(event: Buffer | string): Buffer | string {
    this.#isOpen = false;
    const { length } = this.#opening;
    if (typeof event === "string")
      return event.startsWith(this.#opening) ? event.slice(length) : event;
    const opens = event.subarray(0, length).equals(Buffer.from(this.#opening));
    return opens ? event.subarray(length) : event;
  }
}

/** For non-streaming responses. No ping is ever written, so all of them can share this object. */
export const NO_PINGS = new Pings({ ping: "" });
