// What is written while a stream is silent. See `ServerHalf.ping` in src/plugin/protocol.ts.
import type { ServerHalf } from "../../plugin/protocol.ts";

export class Pings {
  readonly #ping: string;
  /** What the first ping of a silence writes before itself, and the next event then leaves out. */
  readonly #opening: string;
  #isOpen = false;

  constructor({ ping, pingPrefix = "" }: Pick<ServerHalf<"chat">, "ping" | "pingPrefix">) {
    this.#ping = ping;
    this.#opening = pingPrefix;
  }

  /** Whether this format has pings. */
  get isSupported(): boolean {
    return this.#ping !== "";
  }

  /** The text of the next ping. */
  next(): string {
    if (this.#isOpen || this.#opening === "") return this.#ping;
    this.#isOpen = true;
    return this.#opening + this.#ping;
  }

  /** Whether `rest` has to be asked about the next event. */
  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** What is left to write of the event that the pings have opened. */
  stripOpening(event: Buffer | string): Buffer | string {
    this.#isOpen = false;
    const { length } = this.#opening;
    if (typeof event === "string")
      return event.startsWith(this.#opening) ? event.slice(length) : event;
    const opens = event.subarray(0, length).equals(Buffer.from(this.#opening));
    return opens ? event.subarray(length) : event;
  }
}

/** For responses that are not streamed. No ping is ever written, so all of them can share it. */
export const NO_PINGS = new Pings({ ping: "" });
