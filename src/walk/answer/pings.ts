// What is written while a stream is silent. See `ServerHalf.ping` in src/plugin/protocol.ts.
import type { ServerHalf } from "../../plugin/protocol.ts";

export class Pings {
  readonly #ping: string;
  /** What the first ping of a silence writes before itself, and the next event then leaves out. */
  readonly #opening: string;
  #opened = false;

  constructor({ ping, pingOpens = "" }: Pick<ServerHalf<"chat">, "ping" | "pingOpens">) {
    this.#ping = ping;
    this.#opening = pingOpens;
  }

  /** Whether this format has pings. */
  get any(): boolean {
    return this.#ping !== "";
  }

  /** The text of the next ping. */
  next(): string {
    if (this.#opened || this.#opening === "") return this.#ping;
    this.#opened = true;
    return this.#opening + this.#ping;
  }

  /** Whether `rest` has to be asked about the next event. */
  get opened(): boolean {
    return this.#opened;
  }

  /** What is left to write of the event that the pings have opened. */
  rest(event: Buffer | string): Buffer | string {
    this.#opened = false;
    const { length } = this.#opening;
    if (typeof event === "string")
      return event.startsWith(this.#opening) ? event.slice(length) : event;
    const opens = event.subarray(0, length).equals(Buffer.from(this.#opening));
    return opens ? event.subarray(length) : event;
  }
}

/** For responses that are not streamed. No ping is ever written, so all of them can share it. */
export const NO_PINGS = new Pings({ ping: "" });
