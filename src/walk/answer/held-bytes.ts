// Bytes of an answer that stay in this process: bounded, and counted among what the process holds.
import { exceed } from "../../model/excess.ts";
import type { ModelEvent } from "../../model/event.ts";
import type { HostCall } from "../call.ts";

/** What every answer may hold without asking. */
const UNASKED = 1024 * 1024;

/** Bytes of an answer that stay here, for the client or for a codec: bounded, and counted as what the process holds. */
export class HeldBytes {
  readonly #call: HostCall;
  readonly #most: number;
  #size = 0;
  #room: number;

  constructor(call: HostCall) {
    this.#call = call;
    const x = call.exchange;
    this.#most = x.work.maxBytes ?? x["~"].gen.maxAnswerBytes;
    this.#room = Math.min(UNASKED, this.#most);
  }

  /** So many bytes more; fewer, where the number is negative. */
  add(bytes: number): void {
    this.#size = Math.max(0, this.#size + bytes);
    if (bytes <= 0 || this.#size <= this.#room) return;
    const x = this.#call.exchange;
    if (this.#size > this.#most)
      exceed(x.work.maxBytes === undefined ? "answer" : "pictures", this.#most);
    const more = Math.min(Math.max(UNASKED, this.#size - this.#room), this.#most - this.#room);
    x["~"].stay.hold(more);
    this.#room += more;
  }

  /** Nothing of it is here any more. */
  none(): void {
    this.#size = 0;
  }
}

/** About how many bytes of it stay where the answer is kept; a partial picture is not kept. */
export function weight(event: ModelEvent): number {
  switch (event.type) {
    case "delta":
      return event.text.length + (event.logprobs ? JSON.stringify(event.logprobs).length : 0);
    case "cite":
      return JSON.stringify(event.citation).length;
    case "proof":
      return event.proof.data.length;
    case "media":
      return event.partial || !("base64" in event.media) ? 0 : event.media.base64.length;
    case "item":
      return bulk(event.item);
    case "open":
      return event.block.type === "opaque" ? JSON.stringify(event.block.raw).length : 0;
    default:
      return 0;
  }
}

/** Vectors are lists of numbers, or bytes: a number weighs what it takes in memory. Deeper than this is not an item. */
const DEPTH = 8;

function bulk(item: unknown, depth = 0): number {
  if (typeof item === "string") return item.length;
  if (typeof item !== "object" || item === null || depth > DEPTH) return 8;
  if (ArrayBuffer.isView(item)) return item.byteLength;
  let sum = 0;
  for (const one of Object.values(item)) sum += bulk(one, depth + 1);
  return sum;
}
