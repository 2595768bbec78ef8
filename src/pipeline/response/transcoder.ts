// The interfaces on both sides of a transcoder.
import type { Fault } from "../../model/error.ts";
import type { FinishReason } from "../../model/event.ts";
import type { Decoder } from "../../plugin/protocol.ts";
import type { CallTally } from "../metering/call-tally.ts";
import type { ClientResponse } from "./client-response.ts";

/** Receives what a transcoder reports about the response. */
export interface TranscoderSink {
  readonly response: ClientResponse;
  readonly tally: CallTally;
  /**
   * Whether the response has ended, with or without an error. Data that arrives later is dropped.
   */
  readonly isOver: boolean;
  onContent(): void;
  /**
   * Called before the final event is written. Everything written from then on waits for the bill.
   */
  onFinishing(reason: FinishReason): void;
  /** Called when the final event has been written. */
  onFinished(): void;
  /** Ends the response with a fault. Called by an event hook or a watch hook. */
  stopWith(fault: Fault): void;
  onError(problem: unknown): void;
  /**
   * Called when the response ended before the provider's did. The provider's response is then
   * canceled.
   */
  onStoppedEarly(): void;
}

export interface Transcoder extends Decoder {
  /** Writes an error in the client's protocol, inside a stream that has begun. */
  writeFault(fault: Fault): void;
  readonly isBetweenEvents: boolean;
}
