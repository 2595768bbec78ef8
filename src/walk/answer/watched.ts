// The verbatim lane under eyes: an answer is decoded beside its bytes, and its bytes pass after the events in them were shown.
import { formOf } from "../../lib/media.ts";
import type { HeadersIn } from "../../model/values.ts";
import type { Decoder } from "../../plugin/protocol.ts";
import type { HostCall } from "../call.ts";
import { blame } from "../upstream/blame.ts";
import { HeldBytes } from "./held-bytes.ts";
import type { LaneDecoder, LaneSink } from "./lane-sink.ts";
import type { Watching } from "./stages.ts";

const NEWLINE = 0x0a;

/** A stream of events or lines goes on line by line: half a line is nothing that could have been shown. */
export class Watched implements LaneDecoder {
  readonly #sink: LaneSink;
  readonly #lane: LaneDecoder;
  readonly #shown: Decoder;
  readonly #lines: boolean;
  readonly #held: HeldBytes;
  #waiting: Buffer[] = [];

  constructor(
    call: HostCall,
    sink: LaneSink,
    lane: LaneDecoder,
    of: { readonly watching: Watching; readonly headers: HeadersIn },
  ) {
    this.#sink = sink;
    this.#lane = lane;
    this.#lines = formOf(String(of.headers["content-type"] ?? "")) === "stream";
    this.#held = new HeldBytes(call);
    const client = call.candidate["~"].endpoint.protocol!.client!;
    const decoder = client.stream((event) => of.watching.show(event), call, of.headers);
    this.#shown = new Shown(call, sink, of.watching, decoder);
  }

  push(chunk: Buffer): void {
    if (!this.#lines) return this.#pass(chunk);
    const end = chunk.lastIndexOf(NEWLINE) + 1;
    if (end > 0) {
      const whole = [...this.#waiting, chunk.subarray(0, end)];
      this.#waiting = [];
      this.#held.none();
      this.#pass(whole.length === 1 ? whole[0]! : Buffer.concat(whole));
    }
    if (end === chunk.length) return;
    this.#waiting.push(chunk.subarray(end));
    this.#held.add(chunk.length - end);
  }

  end(): void {
    if (this.#waiting.length > 0) this.#pass(Buffer.concat(this.#waiting));
    this.#shown.end();
    if (!this.#sink.over) this.#lane.end();
  }

  fail(...of: Parameters<LaneDecoder["fail"]>): void {
    this.#lane.fail(...of);
  }

  get between(): boolean {
    return this.#lane.between;
  }

  #pass(bytes: Buffer): void {
    this.#shown.push(bytes);
    if (!this.#sink.over) this.#lane.push(bytes);
  }
}

/** A whole answer, shown before any of it passes. */
export function shownWhole(
  call: HostCall,
  sink: LaneSink,
  body: Buffer,
  of: { readonly watching: Watching; readonly headers: HeadersIn },
): void {
  const client = call.candidate["~"].endpoint.protocol!.client!;
  try {
    client.whole(body, (event) => of.watching.show(event), call, of.headers);
  } catch (problem) {
    unseen(call, sink, of.watching, problem);
  }
}

/** What cannot be decoded cannot be shown: then it does not pass, unless every watcher may be passed over. */
function unseen(call: HostCall, sink: LaneSink, { must }: Watching, problem: unknown): void {
  if (sink.over) return;
  if (must) return sink.broke(blame(problem, "answer", call.provider));
  const { gen } = call.exchange["~"];
  gen.log.warn(
    { request: call.exchange.id, provider: call.provider, err: problem },
    "an answer could not be read by its watchers, and passed",
  );
}

/** The decoder whose events are shown. After a failure it is asked no more. */
class Shown implements Decoder {
  readonly #call: HostCall;
  readonly #sink: LaneSink;
  readonly #watching: Watching;
  #decoder: Decoder | undefined;

  constructor(call: HostCall, sink: LaneSink, watching: Watching, decoder: Decoder) {
    this.#call = call;
    this.#sink = sink;
    this.#watching = watching;
    this.#decoder = decoder;
  }

  push(bytes: Buffer): void {
    try {
      this.#decoder?.push(bytes);
    } catch (problem) {
      this.#decoder = undefined;
      unseen(this.#call, this.#sink, this.#watching, problem);
    }
  }

  /** Whether the answer is whole its relay says. */
  end(): void {
    try {
      this.#decoder?.end();
    } catch {
      this.#decoder = undefined;
    }
  }
}
