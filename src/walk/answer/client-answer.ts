// The client's side of an exchange: what may leave, and when. Two gates: nothing leaves before the first content
// (until then another candidate may still answer), and nothing leaves after the finish until the bill is durable.
import type { ServerResponse } from "node:http";
import { fail } from "../../model/error.ts";
import type { HeadersOut } from "../../model/values.ts";
import type { ExchangeState, HostExchange } from "../exchange.ts";
import type { AnswerRace, AnswerWriter } from "./answer-race.ts";
import { answerHeaders } from "./answer-headers.ts";
import { NO_PINGS, Pings } from "./pings.ts";
import type { UpstreamResponse } from "../upstream/response.ts";
import { joined, Recordings } from "./recordings.ts";
import type { Watchdog, Watchable } from "../bounds/watchdog.ts";

const OPEN_AFTER_MS = 10_000;
const OPEN_AFTER_BYTES = 64 * 1024;
const COMMIT_AFTER_BYTES = 1024 * 1024;
const uncork = (res: ServerResponse): void => res.uncork();
const MIME = /^[\x21-\x7e][\x20-\x7e]{0,255}$/;
const PING_EVERY_MS = 15_000;
/** So much waits for a client to read, and no more is asked for: Node's own mark lets each stalled client hold one read more of upstream. */
const WAITS = 16 * 1024;

export class ClientAnswer implements Watchable {
  watchedAt = -1;
  /** Content has left, or is about to: no other candidate after it. */
  committed = false;
  writer: AnswerWriter | undefined;
  /** Of a hedge: the answer that the client's head and pings belong to until this one has content. */
  readonly #lead: ClientAnswer | undefined;
  #race: AnswerRace | undefined;
  #recordings: Recordings | undefined;
  // What a write needs stands here and not behind the exchange: with a thousand streams, each hop is a miss of the processor's cache.
  readonly #stream: boolean;
  readonly #res: ServerResponse;
  readonly #dog: Watchdog;
  readonly #inner: ExchangeState;
  readonly #pings: Pings;
  readonly #cuts: boolean;
  /** What the protocol says that it writes; a relay, and a cache, may know better. */
  readonly #usual: string;
  #mime: string;
  #upstream: Parameters<ClientAnswer["begin"]>[0];
  #waiting: (() => void)[] = [];
  #headers: HeadersOut | (() => HeadersOut) = {};
  #held: (Buffer | string)[] = [];
  #heldBytes = 0;
  #finishing = false;
  #muted = false;
  #blockedSince: number | undefined;
  #lastWrite = performance.now();
  readonly #began = performance.now();

  constructor(x: HostExchange, lead?: ClientAnswer) {
    this.#lead = lead;
    this.#stream = x.stream;
    this.#inner = x["~"];
    this.#res = this.#inner.res;
    this.#dog = this.#inner.gen.watchdog;
    const { server } = this.#inner.frontend;
    this.#pings = lead ? lead.#pings : x.stream && server ? new Pings(server) : NO_PINGS;
    this.#cuts = server?.cuts === true;
    this.#mime = this.#usual =
      server?.type?.(x) ?? (x.stream ? "text/event-stream; charset=utf-8" : "application/json");
    if (!lead) this.#dog.watch(this);
  }

  get opened(): boolean {
    return this.#res.headersSent;
  }

  joins(race: AnswerRace | undefined): void {
    this.#race = race;
  }

  /** From here on the client's answer is this one. */
  #take(): void {
    const race = this.#race;
    if (!race) return;
    this.#race = undefined;
    race.taken(this);
    if (this.#lead) this.#dog.watch(this);
  }

  /** A call begins to answer: what an earlier one left behind is forgotten. */
  begin(
    upstream: Pick<UpstreamResponse, "pause" | "resume"> | undefined,
    headers: HeadersOut | (() => HeadersOut),
  ): void {
    this.#upstream = upstream;
    this.#headers = headers;
    if (!this.opened) this.#mime = this.#usual;
    else if (this.#lead) this.#mime = this.#lead.#mime;
    this.#held = [];
    this.#heldBytes = 0;
    this.#finishing = false;
    this.#recordings?.restart();
  }

  get mime(): string {
    return this.#mime;
  }

  /** What has left cannot be said in another way. */
  type(mime: string): void {
    if (mime === this.#mime) return;
    if (this.opened || !MIME.test(mime))
      fail("upstream", `The provider's answer is of a type that cannot be passed on.`, {
        code: "bad_content_type",
      });
    // A relay takes it from the head of an upstream.
    this.#mime = this.#inner.gen.mask(mime);
  }

  commit(): void {
    if (this.committed) return;
    this.#take();
    this.committed = true;
    if (this.#stream) {
      this.#open();
      if (!this.#finishing) this.#flush();
    }
  }

  /** From here on, everything waits for `settled`. */
  finishing(): void {
    this.#take();
    this.#finishing = true;
  }

  settled(): void {
    this.#finishing = false;
    if (!this.#stream) return;
    this.#flush();
    if (this.#blockedSince === undefined) this.#upstream?.resume();
  }

  write(chunk: Buffer | string): void {
    if (this.#muted) return;
    this.#recordings?.copy(chunk);
    if (this.committed && !this.#finishing && this.#stream) return this.#put(chunk);
    this.#held.push(chunk);
    this.#heldBytes += chunk.length;
    if (this.#stream && !this.committed) {
      if (this.#heldBytes > COMMIT_AFTER_BYTES) this.commit();
      else if (this.#heldBytes > OPEN_AFTER_BYTES) this.#open();
    }
    if (this.#finishing && this.#heldBytes > COMMIT_AFTER_BYTES) this.#upstream?.pause();
  }

  /** For an endpoint that makes the answer here and has no upstream to pause: resolves when the client reads again. */
  room(): Promise<void> | undefined {
    if (this.#blockedSince === undefined || this.#muted) return undefined;
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  /** The answer is over: what is held leaves, and with it the connection is free. */
  end(): void {
    this.#take();
    this.#dog.leave(this);
    this.#recordings?.end(!this.#muted);
    const res = this.#res;
    if (this.#muted || res.destroyed) return;
    if (this.#stream) {
      this.#open();
      this.#flush();
      res.end();
      return;
    }
    const whole = joined(this.#held);
    this.#head(whole.length);
    this.#inner.bytesOut += whole.length;
    res.end(whole);
  }

  /**
   * The answer has failed after its head was sent: `say` writes the protocol's error, and the stream ends in the way that its
   * clients take for a failure. If `say` throws, the connection breaks without a word.
   */
  failed(say: () => void): void {
    try {
      say();
      if (this.#cuts) this.#breakOff();
      else this.end();
    } catch (problem) {
      this.mute();
      this.#res.destroy();
      throw problem;
    }
  }

  /** What is held leaves, and then the connection breaks: what ends well would look whole. */
  #breakOff(): void {
    this.#dog.leave(this);
    this.#recordings?.end(false);
    const res = this.#res;
    if (this.#muted || res.destroyed) return;
    this.#open();
    this.#flush();
    this.#muted = true;
    res.write("", () => res.destroy());
  }

  /** The client has gone, or must not hear more: nothing leaves any longer. */
  mute(): void {
    this.#muted = true;
    this.#race = undefined;
    this.#held = [];
    this.#proceed();
    this.#recordings?.end(false);
    this.#dog.leave(this);
  }

  /** What the client gets, once it is settled; null when it was cut or is larger than `max`. */
  record(max: number): Promise<Buffer[] | null> {
    return (this.#recordings ??= new Recordings()).add(max);
  }

  /** Given up before anything left: the refusal writes the answer. */
  abandon(): void {
    this.#recordings?.end(false);
    this.#dog.leave(this);
  }

  tick(now: number): void {
    if (this.#muted) return;
    if (this.#blockedSince !== undefined && now - this.#blockedSince > this.#inner.gen.writeMs)
      return void this.#res.destroy();
    if (!this.#stream || !this.#pings.any) return;
    if (!this.opened && now - this.#began > OPEN_AFTER_MS) this.#open();
    if (this.opened && !this.#finishing && now - this.#lastWrite > PING_EVERY_MS) {
      if (!this.committed || (this.writer?.between ?? true)) this.#send(this.#pings.next());
    }
  }

  #open(): void {
    if (this.opened) return;
    if (this.#lead && !this.committed) return this.commit();
    if (!this.#lead) this.#race?.opens();
    this.#head();
  }

  #head(length?: number): void {
    const inner = this.#inner;
    if (inner.res.headersSent) return;
    const list: string[] = ["content-type", this.#mime];
    if (length === undefined) list.push("cache-control", "no-cache", "x-accel-buffering", "no");
    else list.push("content-length", String(length));
    const headers = typeof this.#headers === "function" ? this.#headers() : this.#headers;
    for (const name in headers) {
      const value = headers[name];
      if (value !== undefined) list.push(name, value);
    }
    Object.freeze(headers);
    for (const [name, value] of answerHeaders(inner, length !== undefined)) list.push(name, value);
    if (inner.headers) for (const [name, value] of inner.headers) list.push(name, value);
    inner.res.writeHead(200, list);
    if (length !== undefined) return;
    // Nearly always something follows in this turn, and leaves with it.
    inner.res.cork();
    inner.res.flushHeaders();
    process.nextTick(uncork, inner.res);
  }

  #flush(): void {
    const held = this.#held;
    if (held.length === 0) return;
    this.#held = [];
    this.#heldBytes = 0;
    this.#res.cork();
    for (const chunk of held) this.#put(chunk);
    this.#res.uncork();
  }

  #put(chunk: Buffer | string): void {
    this.#send(this.#pings.opened ? this.#pings.rest(chunk) : chunk);
  }

  #send(chunk: Buffer | string): void {
    const res = this.#res;
    this.#inner.bytesOut += chunk.length;
    this.#lastWrite = this.#dog.now;
    const room = res.write(chunk);
    if (this.#blockedSince !== undefined || (room && res.writableLength < WAITS)) return;
    this.#blockedSince = performance.now();
    this.#upstream?.pause();
    const go = (problem?: unknown) => {
      if (problem) return;
      this.#blockedSince = undefined;
      this.#upstream?.resume();
      this.#proceed();
    };
    // Where Node sees room enough, it says nothing when there is more.
    if (room) res.write("", go);
    else res.once("drain", go);
  }

  #proceed(): void {
    for (const go of this.#waiting.splice(0)) go();
  }
}
