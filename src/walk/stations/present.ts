import { wallClock } from "../../lib/wall-clock.ts";
import { formOf } from "../../lib/media.ts";
import { fail, fault, faultOf, type Fault } from "../../model/error.ts";
import type { FinishReason, ModelEvent } from "../../model/event.ts";
import type { ClientAnswer } from "../answer/client-answer.ts";
import { inTime, SETTLE_MS, settleCall } from "../money/bill.ts";
import { blame } from "../upstream/blame.ts";
import { shown } from "../upstream/heed.ts";
import { usable } from "../upstream/own-code.ts";
import { timesOf } from "../upstream/times.ts";
import { contentCame } from "../targets/first-content.ts";
import type { HostCall } from "../call.ts";
import { keeper } from "../answer/stages.ts";
import { late, type Tolerance } from "../hook-failures.ts";
import {
  internal,
  relayed,
  translated,
  truncated,
  written,
  type AnswerSource,
} from "../answer/lane.ts";
import type { LaneDecoder, LaneSink } from "../answer/lane-sink.ts";
import type { UpstreamResponse, ResponseSink } from "../upstream/response.ts";
import type { Tally } from "../money/tally.ts";
import type { Watchable } from "../bounds/watchdog.ts";

/** After its terminal an upstream has this long to end its message, so that its connection can be used again. */
const LINGER_MS = 5_000;
/** How often a stream says how far it is, so that a crash is presumed from real counts. */
const PROGRESS_MS = 1_000;
/** A provider that bills the rest anyway is read on for this long after the client left. */
const DRAIN_MS = 60_000;
const GONE = "The client went away.";

/**
 * The answer of one call, from upstream's first byte to the client's last. Resolves when all of it has left and is
 * billed; rejects when it failed before any content left, so that another candidate may be tried.
 */
export function present(
  call: HostCall,
  source: AnswerSource,
  answer: ClientAnswer,
  tally: Tally,
): Promise<void> {
  return new Promise((resolve, reject) => {
    new Presentation(call, answer, tally, resolve, reject).begin(source);
  });
}

class Presentation implements ResponseSink, Watchable, LaneSink {
  watchedAt = -1;
  readonly answer: ClientAnswer;
  readonly tally: Tally;
  readonly #call: HostCall;
  readonly #resolve: () => void;
  readonly #reject: (error: unknown) => void;
  #decoder: LaneDecoder | undefined;
  #response: UpstreamResponse | undefined;
  #over = false;
  #finishing: FinishReason | undefined;
  #terminal = false;
  #settled = false;
  #drained = false;
  #due = Infinity;
  /** What its end waits for. */
  #keeper: Tolerance | undefined;
  #told = performance.now();

  constructor(
    call: HostCall,
    answer: ClientAnswer,
    tally: Tally,
    resolve: () => void,
    reject: (error: unknown) => void,
  ) {
    this.#call = call;
    this.answer = answer;
    this.tally = tally;
    this.#resolve = resolve;
    this.#reject = reject;
  }

  begin(source: AnswerSource): void {
    const x = this.#call.exchange;
    x["~"].onGone.push(() => this.#gone());
    if (x["~"].gone) return this.#gone();
    this.answer.writer = this;
    if (x.stream) x["~"].gen.watchdog.watch(this);
    if ("events" in source) {
      this.#watch(timesOf(this.#call).totalMs); // It has no other timer.
      return void this.#run(source.events);
    }
    this.#response = source.response;
    try {
      this.#decoder = this.#choose(source.response);
      source.response.take(this);
    } catch (problem) {
      this.#failed(problem, "answer");
    }
  }

  /** An upstream that answers whole where a stream was asked is taken at its word. */
  #choose(response: UpstreamResponse): LaneDecoder {
    const call = this.#call;
    const protocol = call.candidate["~"].endpoint.protocol!;
    const mime = String(response.headers["content-type"] ?? "");
    const form = formOf(mime);
    if (response.headers["content-encoding"] && response.headers["content-encoding"] !== "identity")
      fail("upstream", "The provider compressed its answer although asked not to.", {
        code: "bad_encoding",
      });
    if (/^text\/html/i.test(mime))
      fail("upstream", "The provider answered with a web page: is its base_url right?", {
        code: "bad_content_type",
      });
    const stream = form === undefined ? call.stream : form === "stream";
    if (call.lane === "verbatim" && stream === call.stream)
      return relayed(call, this, response.headers);
    return translated(call, this, { protocol, headers: response.headers, stream });
  }

  async #run(events: AsyncIterable<ModelEvent>): Promise<void> {
    const { emit, fail: failed } = written(this.#call, this);
    this.#decoder = { push() {}, end() {}, fail: failed, between: true };
    try {
      let finished = false;
      for await (const event of usable(this.#call, events)) {
        const room = this.answer.room();
        if (room) await room;
        if (this.#over) break;
        finished ||= event.type === "finish";
        emit(event);
      }
      if (!this.#over && !finished) throw truncated();
      this.#drained = true;
      this.#awaitStages();
    } catch (problem) {
      this.end(problem);
    } finally {
      this.#call.release();
    }
  }

  #failed(problem: unknown, who: "target" | "answer"): void {
    this.broke(blame(problem, who, this.#call.provider));
  }

  data(chunk: Buffer): void {
    if (this.#over || this.#drained) return;
    // Node gathers what is written in one turn and sends it at once. With a cork of ours each event would be a system call.
    try {
      this.#decoder!.push(chunk);
    } catch (problem) {
      this.#failed(problem, "answer");
    }
  }

  enough(): void {
    this.tally.stopped = this.#drained = true;
    this.#response?.abort(fault("canceled", "stopped at a sequence"));
    this.#awaitStages();
  }

  end(problem?: unknown): void {
    if (this.#over || this.tally.stopped) return;
    if (problem !== undefined && !this.tally.ended) return this.#failed(problem, "target");
    this.#drained = true;
    if (!this.#terminal && problem === undefined) {
      try {
        this.#decoder!.end();
      } catch (thrown) {
        return this.#failed(thrown, "answer");
      }
    }
    this.#terminal ||= this.#finishing !== undefined;
    this.#awaitStages();
  }

  /** A stage may keep the end that has come in, and no longer than a hook may take. */
  #awaitStages(): void {
    this.#keeper = this.#over || this.tally.ended ? undefined : keeper(this.#call);
    if (this.#keeper) this.#watch(this.#keeper.timeoutMs);
    this.#close();
  }

  content(): void {
    if (this.#over) return;
    contentCame(this.#call, this.tally);
    if (this.#call.exchange.stream) this.answer.commit();
  }

  get between(): boolean {
    return this.#decoder?.between ?? true;
  }

  get over(): boolean {
    return this.#over;
  }

  finishing(reason: FinishReason): void {
    if (this.#finishing !== undefined || this.#over) return;
    this.#finishing = reason;
    this.tally.ended = true;
    this.content();
    this.answer.finishing();
    this.#call.exchange["~"].finish = reason;
    const row = settleCall(this.tally, { finish: reason });
    this.#watch(SETTLE_MS);
    void row.then(() => this.#billed());
  }

  finished(): void {
    this.#terminal = true;
    this.#close();
  }

  stop({ kind, message, ...more }: Fault): void {
    if (!this.#over) this.broke(fault(kind, message, more));
  }

  tick(now: number): void {
    if (this.#finishing === undefined && now - this.#told > PROGRESS_MS && this.tally.accepted) {
      this.#told = now;
      this.#call.exchange["~"].gen.ledger.progress(this.tally.progress(wallClock()));
    }
    if (now < this.#due) return;
    if (!this.#settled && this.#finishing !== undefined) return this.#billed();
    if (this.#call.exchange["~"].gone) return this.broke(fault("canceled", GONE));
    if (this.#keeper) return this.tally.ended ? undefined : this.broke(late(this.#keeper, "event"));
    this.#failed(
      fault("timeout", "The provider took too long.", { code: "upstream_timeout" }),
      "target",
    );
  }

  #billed(): void {
    if (this.#settled) return;
    this.#settled = true;
    this.answer.settled();
    if (!this.#drained) this.#watch(LINGER_MS);
    this.#close();
  }

  #close(): void {
    if (this.#over || !this.#settled || !this.#terminal || !this.#drained) return;
    this.#leave();
    this.answer.end();
    this.#resolve();
  }

  /** Before content another candidate may be tried. After it the stream ends in the protocol's own error, and the row says what was sent. */
  broke(problem: unknown): void {
    if (this.#over) return;
    const x = this.#call.exchange;
    if (this.#finishing !== undefined) {
      this.#drained = this.#terminal = true;
      this.#close();
      return this.#response?.abort(fault("canceled", "given up"));
    }
    // Over before the response is: its end comes back here at once, as one more problem.
    this.#leave();
    this.#response?.abort(fault("canceled", "given up"));
    if (!this.answer.committed || !x.stream || x["~"].gone) return this.#reject(problem);
    const failure = faultOf(problem) ?? internal(this.#call, problem);
    x["~"].fault = failure;
    const row = settleCall(this.tally, { fault: failure });
    this.#call.end(fault("canceled", "given up"));
    const said = inTime(row).then(() => this.#say(shown(x["~"].gen, failure)));
    said.then(this.#resolve, this.#reject);
  }

  #say(failure: Fault): void {
    try {
      this.answer.failed(() => this.#decoder?.fail(failure));
    } catch (problem) {
      internal(this.#call, problem);
    }
  }

  #gone(): void {
    if (this.#over) return;
    this.answer.mute();
    if (this.#finishing !== undefined) return;
    if (this.#call.candidate["~"].provider.onDisconnect === "drain" && this.tally.accepted)
      return this.#watch(DRAIN_MS);
    this.broke(fault("canceled", GONE));
  }

  #watch(ms: number): void {
    const { watchdog } = this.#call.exchange["~"].gen;
    watchdog.watch(this);
    this.#due = performance.now() + ms;
  }

  #leave(): void {
    this.#over = true;
    this.#call.exchange["~"].gen.watchdog.leave(this);
  }
}
