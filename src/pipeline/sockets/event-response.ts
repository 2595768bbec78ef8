// Receives the response of a request that a WebSocket message made. An event stream is split into
// its events. Any other response is one piece.
import { BOUNDS } from "../../lib/bounds.ts";
import { bodyFormOf } from "../../lib/media-type.ts";
import type { Decoder } from "../../plugin/protocol.ts";
import { createEventDecoder } from "../../protocols/sse/index.ts";
import { VirtualResponse } from "../exchange/virtual-connection.ts";

/** A response in one piece. */
export interface WholeResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export interface ResponseReceiver {
  /** Called for each event, with its data. */
  onEvent(data: string): void;
  /** Called for a response that is not a stream. */
  onWhole(response: WholeResponse): void;
  /** Called if the response ended before it was complete. */
  onTruncated(): void;
  /** Returns a promise if the client must read before more may be sent. */
  whenWritable(): Promise<void> | undefined;
}

// The pipeline has already enforced the bounds of the protocol.
const LIMITS = {
  maxLineBytes: BOUNDS.imageEvent.max,
  maxEventBytes: BOUNDS.imageEvent.max,
} as const;

export class EventResponse extends VirtualResponse {
  readonly #receiver: ResponseReceiver;
  #headers: ReadonlyMap<string, string> = new Map();
  #decoder: Decoder | undefined;
  #chunks: Buffer[] = [];

  constructor(receiver: ResponseReceiver) {
    super();
    this.#receiver = receiver;
  }

  protected override onHead(headers: ReadonlyMap<string, string>): void {
    this.#headers = headers;
    if (this.statusCode < 300 && bodyFormOf(headers.get("content-type") ?? "") === "stream")
      this.#decoder = createEventDecoder((_name, data) => this.#receiver.onEvent(data), LIMITS);
  }

  override _write(chunk: Buffer, _encoding: string, proceed: (error?: Error) => void): void {
    if (!this.#decoder) {
      this.#chunks.push(chunk);
      return proceed();
    }
    try {
      this.#decoder.push(chunk);
    } catch (problem) {
      return proceed(problem as Error);
    }
    const room = this.#receiver.whenWritable();
    if (room) void room.then(() => proceed());
    else proceed();
  }

  override _final(done: (error?: Error) => void): void {
    try {
      if (this.#decoder) this.#decoder.end();
      else
        this.#receiver.onWhole({
          status: this.statusCode,
          headers: Object.fromEntries(this.#headers),
          body: Buffer.concat(this.#chunks).toString(),
        });
      done();
    } catch (problem) {
      done(problem as Error);
    }
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    if (!this.writableFinished) this.#receiver.onTruncated();
    // Errors of a response have no listener.
    done(null);
    void error;
  }
}
