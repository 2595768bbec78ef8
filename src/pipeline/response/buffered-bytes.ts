// Counts the bytes of a response that are kept in memory, limits the count, and reserves the bytes
// in the memory budget of the process.
import { failBoundExceeded } from "../../model/bound-exceeded.ts";
import type { ModelEvent } from "../../model/event.ts";
import type { HostCall } from "../exchange/call.ts";

/** Bytes that every response may keep without a reservation. */
const UNRESERVED_BYTES = 1024 * 1024;

/**
 * Counts bytes of a response that are kept for the client or for a codec. The count is limited, and
 * reserved in the process's memory budget.
 */
export class BufferedBytes {
  readonly #call: HostCall;
  readonly #maxBytes: number;
  #size = 0;
  #reservedBytes: number;

  constructor(call: HostCall) {
    this.#call = call;
    const x = call.exchange;
    this.#maxBytes = x.operationSpec.maxResponseBytes ?? x.state.gen.maxResponseBytes;
    this.#reservedBytes = Math.min(UNRESERVED_BYTES, this.#maxBytes);
  }

  /** Adds to the count. A negative number reduces it. */
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
    x.state.admission.permit.reserveMemory(more);
    this.#reservedBytes += more;
  }

  /** Sets the count to 0. Called when no bytes are kept any more. */
  reset(): void {
    this.#size = 0;
  }
}

/**
 * Returns the approximate size in bytes of an event in a buffered response. A partial image is not
 * kept.
 */
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

/**
 * Depth to which values are counted. No item is nested more deeply. Embeddings are lists of
 * numbers, or bytes. A number counts with its size in memory.
 */
const MAX_DEPTH = 8;

function sizeOfValue(item: unknown, depth = 0): number {
  if (typeof item === "string") return item.length;
  if (typeof item !== "object" || item === null || depth > MAX_DEPTH) return 8;
  if (ArrayBuffer.isView(item)) return item.byteLength;
  let sum = 0;
  for (const one of Object.values(item)) sum += sizeOfValue(one, depth + 1);
  return sum;
}
