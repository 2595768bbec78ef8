// What stands on both sides of a lane: what it tells, and what it takes.
import type { Fault } from "../../model/error.ts";
import type { FinishReason } from "../../model/event.ts";
import type { Decoder } from "../../plugin/protocol.ts";
import type { CallTally } from "../metering/call-tally.ts";
import type { ClientResponse } from "./client-response.ts";

/** What a lane tells of the answer that passes through it. */
export interface TranscoderSink {
  readonly response: ClientResponse;
  readonly tally: CallTally;
  /** It has ended, one way or another: what still comes is dropped. */
  readonly isOver: boolean;
  onContent(): void;
  /** Before the terminal is written: what is written from here on waits for the bill. */
  onFinishing(reason: FinishReason): void;
  /** The terminal has been written. */
  onFinished(): void;
  /** A stage of the event pipe ends the answer. */
  stopWith(fault: Fault): void;
  onError(problem: unknown): void;
  /** The answer ended before its provider did, which is to stop. */
  onStoppedEarly(): void;
}

export interface Transcoder extends Decoder {
  /** The client protocol's own error, inside a stream that has begun. */
  writeFault(fault: Fault): void;
  readonly isBetweenEvents: boolean;
}
