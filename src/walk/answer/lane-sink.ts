// What stands on both sides of a lane: what it tells, and what it takes.
import type { Fault } from "../../model/error.ts";
import type { FinishReason } from "../../model/event.ts";
import type { Decoder } from "../../plugin/protocol.ts";
import type { Tally } from "../money/tally.ts";
import type { ClientAnswer } from "./client-answer.ts";

/** What a lane tells of the answer that passes through it. */
export interface LaneSink {
  readonly answer: ClientAnswer;
  readonly tally: Tally;
  /** It has ended, one way or another: what still comes is dropped. */
  readonly over: boolean;
  content(): void;
  /** Before the terminal is written: what is written from here on waits for the bill. */
  finishing(reason: FinishReason): void;
  /** The terminal has been written. */
  finished(): void;
  /** A stage of the event pipe ends the answer. */
  stop(fault: Fault): void;
  broke(problem: unknown): void;
  /** The answer ended before its provider did, which is to stop. */
  enough(): void;
}

export interface LaneDecoder extends Decoder {
  /** The client protocol's own error, inside a stream that has begun. */
  fail(fault: Fault): void;
  readonly between: boolean;
}
