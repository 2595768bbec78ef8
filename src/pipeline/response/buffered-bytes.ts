// Bytes of an answer that stay in this process: bounded, and counted among what the process holds.
import { failBoundExceeded } from "../../model/bound-exceeded.ts";
import type { ModelEvent } from "../../model/event.ts";
import type { HostCall } from "../exchange/call.ts";

/** What every answer may hold without asking. */
const UNRESERVED_BYTES = 1024 * 1024;

/** Bytes of an answer that stay here, for the client or for a codec: bounded, and counted as what the process holds. */
export class BufferedBytes {
  readonly #call: HostCall;
  readonly #maxBytes: number;
  #size = 0;
  #reservedBytes: number;

  constructor(call: HostCall) {
    this.#call = call;
    const x = call.exchange;
    this.#maxBytes = x.operationSpec.maxResponseBytes ?? x["~"].gen.maxResponseBytes;
    this.#reservedBytes = Math.min(UNRESERVED_BYTES, this.#maxBytes);
  }

  /** So many bytes more; fewer, where the number is negative. */
  add(bytes: number): void {
    this.#size = Math.max(0, this.#size + bytes);
    if (bytes <= 0 || this.#size <= this.#reservedBytes) return;
    const x = this.#call.exchange;
    if (this.#size > this.#maxBytes)
      failBoundExceeded(
        x.operationSpec.maxResponseBytes === undefined ? "response" : "imageResponse",
        this.#maxBytes,
      );
    const more = Math.min(
      Math.max(UNRESERVED_BYTES, this.#size - this.#reservedBytes),
      this.#maxBytes - this.#reservedBytes,
    );
    x["~"].permit.reserveMemory(more);
    this.#reservedBytes += more;
  }

  /** Nothing of it is here any more. */
  reset(): void {
    this.#size = 0;
  }
}

/** About how many bytes of it stay where the answer is kept; a partial picture is not kept. */
export function bufferedSizeOf(event: ModelEvent): number {
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
      return sizeOfValue(event.item);
    case "open":
      return event.block.type === "opaque" ? JSON.stringify(event.block.raw).length : 0;
    default:
      return 0;
  }
}

/** Vectors are lists of numbers, or bytes: a number weighs what it takes in memory. Deeper than this is not an item. */
const MAX_DEPTH = 8;

function sizeOfValue(item: unknown, depth = 0): number {
  if (typeof item === "string") return item.length;
  if (typeof item !== "object" || item === null || depth > MAX_DEPTH) return 8;
  if (ArrayBuffer.isView(item)) return item.byteLength;
  let sum = 0;
  for (const one of Object.values(item)) sum += sizeOfValue(one, depth + 1);
  return sum;
}
