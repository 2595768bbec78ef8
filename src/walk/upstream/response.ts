// One request to an upstream, on undici's dispatch: no streams, no promises per chunk, back-pressure by pause and resume.
import type { Readable } from "node:stream";
import type { Dispatcher } from "undici";
import { BOUNDS, type BoundName } from "../../lib/bounds.ts";
import { fault, faultOf } from "../../model/error.ts";
import { exceed } from "../../model/excess.ts";
import type { CallStage } from "../../model/retry.ts";
import type { HeadersIn } from "../../model/values.ts";
import { formOf } from "../../lib/media.ts";
import { blame } from "./blame.ts";
import { LeadingComments } from "./comments.ts";
import type { HintedTimes } from "./times.ts";
import { broken } from "./broken-line.ts";
import type { Wire } from "../mounted.ts";
import type { Pieces } from "./pieces.ts";
import type { Watchdog, Watchable } from "../bounds/watchdog.ts";

const ERROR_BODY_MS = 5_000;
/** What may come before its taker is there. A head mostly brings the answer's first bytes along, and to stop the parser for them costs more than they do. */
const EARLY_BYTES = 65_536;

/** What takes an answer's bytes. */
export interface ResponseSink {
  data(chunk: Buffer): void;
  /** Without an error: upstream ended its message well. */
  end(error?: unknown): void;
}

const NO_PIECES: readonly Buffer[] = [];

/** Of a body in pieces undici does not know how long it is. */
const announced = (headers: string[], length: number): string[] =>
  headers.some((name, i) => i % 2 === 0 && name.toLowerCase() === "content-length")
    ? headers
    : [...headers, "content-length", String(length)];

const handOver = (response: UpstreamResponse): void => response.come();

/** One answer of a provider. A model that thinks may be silent for minutes; the operator sets how long is too long. */
export class UpstreamResponse implements Dispatcher.DispatchHandler, Watchable {
  watchedAt = -1;
  status = 0;
  headers: HeadersIn = {};
  readonly #dog: Watchdog;
  #timeouts: HintedTimes;
  readonly #started: number;
  #due: number;
  /** An event stream has sent nothing but comments. */
  #comments: LeadingComments | undefined;
  #controller: Dispatcher.DispatchController | undefined;
  #taker: ResponseSink | undefined;
  /** What has come and was not handed over. */
  #came: Buffer[] = [];
  #early = 0;
  /** The client does not read. */
  #paused = false;
  #ended: { error?: unknown } | undefined;
  #refused: Error | undefined;
  /** Its last bytes could not be sent. */
  #cut = false;
  /** Its call, until there is a head: it is told how far it has come. */
  #head:
    | {
        readonly call: { stage: CallStage };
        resolve(response: UpstreamResponse): void;
        reject(error: unknown): void;
      }
    | undefined;

  /** `hinted`: the total is the client's own wish. */
  constructor(dog: Watchdog, timeouts: HintedTimes) {
    this.#dog = dog;
    this.#timeouts = timeouts;
    this.#started = performance.now();
    this.#due = this.#started + timeouts.firstByteMs;
  }

  /** How far its call has come. Where bytes may have left and nothing came back, it is not known whether there is work to pay for. */
  get stage(): CallStage {
    if (this.status > 0) return "refused";
    if (this.#controller === undefined) return "unsent";
    return this.#cut ? "cut" : "unanswered";
  }

  /** Resolves with itself when it has a head. */
  go(
    call: { stage: CallStage; readonly fresh: boolean },
    wire: Wire,
    of: { method: string; path: string; headers: string[]; body: Pieces | null },
  ): Promise<UpstreamResponse> {
    return new Promise((resolve, reject) => {
      this.#head = { call, resolve, reject };
      this.#dog.watch(this);
      const line = call.fresh ? wire.fresh() : wire.pool;
      const list = of.body?.list ?? NO_PIECES;
      line.dispatch(
        {
          method: of.method as Dispatcher.HttpMethod,
          path: of.path,
          headers: list.length > 1 ? announced(of.headers, of.body!.length) : of.headers,
          // undici takes anything that it can iterate over; its types do not say so.
          body: list.length > 1 ? (list as unknown as Readable) : (list[0] ?? null),
        },
        this,
      );
      // It ends with this request.
      if (call.fresh) line.close().catch(() => {});
    });
  }

  take(taker: ResponseSink): void {
    this.#taker = taker;
    this.give();
    if (this.#ended) taker.end(this.#ended.error);
    else if (this.#early > EARLY_BYTES && !this.#paused) this.#controller?.resume();
  }

  /** While the client does not read, nothing is read from upstream: its silence then is no fault. */
  pause(): void {
    this.#paused = true;
    this.#due = Infinity;
    this.#controller?.pause();
  }
  resume(): void {
    this.#paused = false;
    this.#due = this.#dog.now + this.#timeouts.idleMs;
    this.give();
    if (!this.#paused) this.#controller?.resume();
  }
  /** Gives the rest of the answer this much time. */
  hurry(ms: number): void {
    this.#timeouts = { ...this.#timeouts, totalMs: this.#dog.now - this.#started + ms };
  }
  abort(reason: Error): void {
    this.#refused = reason;
    if (this.#controller) this.#controller.abort(reason);
    else this.onResponseError(undefined, reason);
  }

  tick(now: number): void {
    const { totalMs, hinted } = this.#timeouts;
    if (now > this.#started + totalMs) {
      if (!hinted) return this.#late("took longer than", totalMs);
      const late = "The provider took longer than this client waits.";
      this.abort(blame(fault("timeout", late, { code: "client_timeout" }), "caller"));
      return;
    }
    const { firstByteMs, idleMs } = this.#timeouts;
    const began = this.status > 0 && !this.#comments;
    if (!began && !this.#paused && now > this.#started + firstByteMs)
      return this.#late("sent nothing for", firstByteMs);
    if (now > this.#due) this.#late("fell silent for", idleMs);
  }

  #late(what: string, ms: number): void {
    this.abort(
      fault("timeout", `The provider ${what} ${ms / 1000} s.`, { code: "upstream_timeout" }),
    );
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#refused) controller.abort(this.#refused);
  }

  onResponseStart(c: Dispatcher.DispatchController, status: number, headers: HeadersIn): void {
    // Each is a view into the first read from the socket, which would be held for as long as the answer lasts.
    c.rawHeaders = null;
    if (status < 200) return;
    this.status = status;
    this.headers = headers;
    this.#due = this.#dog.now + this.#timeouts.idleMs;
    if (formOf(String(headers["content-type"] ?? "")) === "stream")
      this.#comments = new LeadingComments();
    this.#waiter()?.resolve(this);
  }

  /** It waits no longer. */
  #waiter() {
    const head = this.#head;
    this.#head = undefined;
    if (head) head.call.stage = this.stage;
    return head;
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    // Bytes that were on their way when it was paused still come.
    if (!this.#paused) this.#due = this.#dog.now + this.#timeouts.idleMs;
    if (this.#comments?.end(chunk)) this.#comments = undefined;
    this.#came.push(chunk);
    if (!this.#taker) {
      this.#early += chunk.length;
      if (this.#early > EARLY_BYTES) controller.pause();
    } else if (this.#came.length === 1) process.nextTick(handOver, this);
  }

  /** What comes for a client that does not read stays as it came: with the rest of its read, which the socket holds. */
  come(): void {
    if (!this.#paused) this.give();
  }

  /**
   * What one read of the socket brought goes on in one piece, however many chunks of HTTP it was: it is looked at
   * once and written once.
   */
  give(): void {
    const came = this.#came;
    if (came.length === 0 || !this.#taker) return;
    this.#taker.data(came.length === 1 ? came.pop()! : Buffer.concat(came.splice(0)));
  }

  onResponseEnd(): void {
    this.#over();
  }

  onResponseError(_c: Dispatcher.DispatchController | undefined, cause: Error): void {
    this.#cut = (cause as { code?: string }).code === "EPIPE";
    const told = faultOf(cause) ? cause : broken(cause);
    this.#waiter()?.reject(told);
    this.#over(told);
  }

  #over(problem?: unknown): void {
    if (this.#ended) return;
    this.#dog.leave(this);
    this.#ended = problem === undefined ? {} : { error: problem };
    this.give();
    this.#taker?.end(problem);
  }
}

/** The beginning of an error's body. Its meaning is mostly in its head, so the rest is not waited for. */
export function glance(response: UpstreamResponse, max: number): Promise<Buffer> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    let size = 0;
    const enough = () => resolve(Buffer.concat(chunks).subarray(0, max));
    response.hurry(ERROR_BODY_MS);
    response.take({
      data(chunk) {
        chunks.push(chunk);
        if ((size += chunk.length) < max) return;
        enough();
        response.abort(fault("canceled", "enough of it"));
      },
      end: enough,
    });
  });
}

/** Counts what is kept, and throws where it is too much. */
interface Held {
  add(bytes: number): void;
}

/** So few bytes that they need no room of their own. */
export class Few implements Held {
  readonly #bound: BoundName;
  #size = 0;

  constructor(bound: BoundName) {
    this.#bound = bound;
  }

  add(bytes: number): void {
    this.#size += bytes;
    if (this.#size > BOUNDS[this.#bound].most) exceed(this.#bound);
  }
}

/** The whole body of an answer that should be small: a token count, or what is asked for by id. */
export function gather(response: UpstreamResponse, held: Held): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    response.take({
      data(chunk) {
        try {
          held.add(chunk.length);
          chunks.push(chunk);
        } catch (problem) {
          // Said here too: an answer that has all come is not broken off any more.
          reject(problem as Error);
          response.abort(problem as Error);
        }
      },
      end(problem) {
        if (problem !== undefined) reject(problem);
        else resolve(Buffer.concat(chunks));
      },
    });
  });
}
