// How an upstream's answer becomes the client's: its bytes relayed, or its events decoded and written anew.
import { BOUNDS } from "../../lib/bounds.ts";
import { fault, type Fault } from "../../model/error.ts";
import { exceed } from "../../model/excess.ts";
import type { FinishReason, ModelAnswer, ModelEvent, UsageSeen } from "../../model/event.ts";
import { folding } from "../../model/fold.ts";
import type { Usage } from "../../model/usage.ts";
import type { HeadersIn } from "../../model/values.ts";
import type { Protocol, Relay, RelaySink } from "../../plugin/protocol.ts";
import { answering } from "./answer-context.ts";
import type { ClientAnswer } from "./client-answer.ts";
import { GatheredText } from "./gathered-text.ts";
import type { HostCall } from "../call.ts";
import type { LaneDecoder, LaneSink } from "./lane-sink.ts";
import { HeldBytes, weight } from "./held-bytes.ts";
import { inWantedForm, withBytes } from "./pictures.ts";
import { staged, watching } from "./stages.ts";
import { stoppingAt } from "./stop-texts.ts";
import { shownWhole, Watched } from "./watched.ts";
import type { UpstreamResponse } from "../upstream/response.ts";
import type { Tally } from "../money/tally.ts";

/** Where a call's answer comes from. */
export type AnswerSource = { response: UpstreamResponse } | { events: AsyncIterable<ModelEvent> };

/** What a relay gives out counts for a little more than what it took in: it may have written a name anew, shorter. */
const GIVEN = 1.5;

/** Verbatim: the same Buffers go on, the codec's relay looks at them as they pass. */
export function relayed(call: HostCall, sink: LaneSink, headers: HeadersIn): LaneDecoder {
  const decoder = new Verbatim(call, sink, headers);
  const watchers = watching(call, sink);
  if (!watchers)
    return call.exchange.stream
      ? decoder
      : whole(call, sink, decoder, (body) => decoder.whole(body));
  const of = { watching: watchers, headers };
  if (call.exchange.stream) return new Watched(call, sink, decoder, of);
  return whole(call, sink, decoder, (body) => {
    shownWhole(call, sink, body, of);
    if (!sink.over) decoder.whole(body);
  });
}

/** Both ends of a relay in one object: with a thousand streams, each object that an event touches is a miss of the processor's cache. */
class Verbatim implements LaneDecoder, RelaySink {
  readonly #relay: Relay;
  readonly #sink: LaneSink;
  readonly #answer: ClientAnswer;
  readonly #tally: Tally;
  readonly #held: HeldBytes;

  constructor(call: HostCall, sink: LaneSink, headers: HeadersIn) {
    this.#sink = sink;
    this.#held = new HeldBytes(call);
    this.#answer = sink.answer;
    this.#tally = sink.tally;
    const client = call.candidate["~"].endpoint.protocol!.client!;
    this.#relay = client.relay!(this, answering(call), headers);
  }

  /** Bytes that a relay takes in and does not give out are bytes that it keeps. */
  push(chunk: Buffer): void {
    this.#held.add(chunk.length);
    this.#relay.push(chunk);
  }
  whole(body: Buffer): void {
    this.#relay.push(body);
  }
  end(): void {
    this.#relay.end();
    if (!this.#tally.ended) throw truncated();
    this.#sink.finished();
  }
  get between(): boolean {
    return this.#relay.between;
  }
  fail(fault: Fault): void {
    this.#relay.fail(fault);
  }

  type(mime: string): void {
    this.#answer.type(mime);
  }
  bytes(chunk: Buffer): void {
    this.#tally.passedBytes += chunk.length;
    this.#held.add(-GIVEN * chunk.length);
    this.#answer.write(chunk);
  }
  content(bytes?: number): void {
    if (bytes === undefined) this.#tally.untold = true;
    else this.#tally.textBytes += bytes;
    if (!this.#answer.committed) this.#sink.content();
  }
  start(id: string): void {
    this.#tally.began(id);
  }
  usage(seen: UsageSeen): void {
    this.#tally.saw(seen);
  }
  finish(reason: FinishReason): Usage {
    this.#sink.finishing(reason);
    return this.#tally.usage().usage;
  }
}

/** Translated: upstream's bytes → events → the event hooks → the client's protocol. */
export function translated(
  call: HostCall,
  sink: LaneSink,
  source: { protocol: Protocol; headers: HeadersIn; stream: boolean },
): LaneDecoder {
  const { emit, fail: failed, together } = written(call, sink, source.stream);
  const client = source.protocol.client!;
  let finished = false;
  const ended = () => {
    if (!finished) throw truncated();
  };
  if (!source.stream) {
    const decoder = { push() {}, end: ended, fail: failed, between: true };
    const told = (event: ModelEvent) => {
      finished ||= event.type === "finish";
      emit(event);
    };
    return whole(call, sink, decoder, (body) => client.whole(body, told, call, source.headers));
  }
  // A decoder keeps bytes that bring no event: half of one, or a whole answer where a stream was expected.
  const unread = new HeldBytes(call);
  const heard = (event: ModelEvent) => {
    unread.none();
    finished ||= event.type === "finish";
    emit(event);
  };
  const decoder = client.stream(heard, call, source.headers);
  return {
    push(chunk) {
      unread.add(chunk.length);
      together(() => decoder.push(chunk));
    },
    end() {
      decoder.end();
      ended();
    },
    fail: failed,
    between: true,
  };
}

interface EventWriter {
  emit(event: ModelEvent): void;
  fail(fault: Fault): void;
  /** What is emitted within is written at once. */
  together(work: () => void): void;
}

/** Where events go: through the hooks' pipe, into the client's protocol. */
export function written(call: HostCall, sink: LaneSink, stream = true): EventWriter {
  const x = call.exchange;
  const { answer, tally } = sink;
  const server = x["~"].frontend.server!;
  const to = answering(call);
  const out = new GatheredText(answer);
  const encoder = x.stream ? server.stream((piece) => out.write(piece), to) : undefined;
  const folded = encoder ? undefined : folding();
  const held = new HeldBytes(call);
  let events = 0;
  let blocks = 0;
  const last = (event: ModelEvent): void => {
    if (sink.over) return undefined;
    if (++events > BOUNDS.events.most) exceed("events");
    // A protocol that writes an answer anew may have to say all of it once more at its end.
    held.add(weight(event));
    switch (event.type) {
      case "usage":
        return tally.saw(event);
      case "start":
        tally.began(event.id);
        if (!encoder) break;
        encoder.event(event);
        // Some wires tell counts at their beginning, and clients show them: so a guess goes out until upstream's own counts come.
        return encoder.event({ type: "usage", usage: { input: tally.inputEstimate } });
      case "open":
        if (++blocks > BOUNDS.blocks.most) exceed("blocks");
        break;
      case "delta":
        tally.textBytes += Buffer.byteLength(event.text);
        sink.content();
        break;
      case "item":
      case "media":
        sink.content();
        break;
      case "finish": {
        if (encoder) {
          tally.ended = true;
          // What stands before the end is the client's already.
          out.flush();
          sink.finishing(event.reason);
          const { usage } = tally.usage();
          // Where the input was not counted, the guess that went out at the start is taken back.
          const counted = usage.output === undefined ? usage : { input: 0, ...usage };
          encoder.event({ type: "usage", usage: counted });
          encoder.event(event);
          out.flush();
          return sink.finished();
        }
        folded!.event(event);
        const whole = folded!.answer();
        const say = (said: ModelAnswer) => {
          if (sink.over) return;
          // An answer that the client's protocol cannot write is none, and another candidate may have one: so it is written first.
          const body = server.whole({ ...said, usage: tally.usage().usage }, to);
          sink.finishing(event.reason);
          answer.write(Buffer.isBuffer(body) ? body : Buffer.from(JSON.stringify(body)));
          sink.finished();
        };
        const turning = inWantedForm(call, whole);
        if (!turning) return say(whole);
        tally.ended = true;
        return void turning.then(say).catch((problem: unknown) => sink.broke(problem));
      }
    }
    if (encoder) encoder.event(event);
    else folded!.event(event);
  };
  const stages = firstOf(call, sink, encoder ? withBytes(call, last, sink) : last, stream);
  return {
    emit(event) {
      if (!sink.over) tally.heard(event);
      stages(event);
    },
    fail(fault) {
      encoder?.fail(fault);
      out.flush();
    },
    together: (work) => out.together(work),
  };
}

/** Stop sequences that the provider did not get, then the hooks. */
function firstOf(
  call: HostCall,
  sink: LaneSink,
  last: (event: ModelEvent) => void,
  stream: boolean,
): (event: ModelEvent) => void {
  const hooked = staged(call, sink, last);
  if (!call.stops) return hooked;
  const ended = () => stream && sink.enough();
  return stoppingAt(hooked, { texts: call.stops, whole: !stream, ended });
}

function whole(
  call: HostCall,
  sink: LaneSink,
  decoder: LaneDecoder,
  take: (body: Buffer) => void,
): LaneDecoder {
  const held = new HeldBytes(call);
  const chunks: Buffer[] = [];
  return {
    push(chunk) {
      held.add(chunk.length);
      chunks.push(chunk);
    },
    end() {
      take(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks));
      if (!sink.over) decoder.end();
    },
    fail: (fault) => decoder.fail(fault),
    between: true,
  };
}

/** What a codec lets end without a finish would be waited for until all time is over. */
export const truncated = (): Error =>
  fault("upstream", "The provider ended before its finish.", { code: "truncated" });

/** A throw that is no fault: the log has it, the client gets a fixed text. */
export function internal(call: HostCall, problem: unknown): Fault {
  const x = call.exchange;
  x["~"].gen.log.error(
    { request: x.id, provider: call.provider, err: problem },
    "an unexpected error",
  );
  return {
    kind: "internal",
    message: "Something went wrong here. The request id names it in the log.",
  };
}
