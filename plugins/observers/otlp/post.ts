// One batch on its way to the collector: written, compressed, posted, and posted again while the collector says that it may.
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import type { Context } from "tollgate/plugin";
import { ListedAttributes } from "./attributes.ts";
import { type Frame, frameOf } from "./frame.ts";
import type { Items } from "./items.ts";
import { rejectedOf } from "./rejected.ts";
import type { Destination } from "./settings.ts";
import type { Signal } from "./shapes.ts";

const compress = promisify(gzip);

/** Spans are much alike: the fastest way makes them a tenth already, in a quarter of the time. */
const LEVEL = 1;

/** A collector that says so, or one that is not there, may take it later. */
const AGAIN: readonly number[] = [429, 502, 503, 504];
const FIRST_MS = 1_000;
const LONGEST_MS = 30_000;

export interface PostOptions {
  readonly signal: Signal;
  readonly to: Destination;
  readonly resource: ReadonlyMap<string, string>;
  /** For so long a batch is tried again. */
  readonly retryMs: number;
  readonly fetch: Context["fetch"];
  /** Aborts when its generation is over: nothing is asked any more, and what is asked is not waited for. */
  readonly over: AbortSignal;
  /** Each change, once: why it takes nothing; undefined: it takes what it is sent. */
  readonly tell: (why: string | undefined) => void;
}

export class Post {
  readonly #of: PostOptions;
  readonly #frame: Frame;
  readonly #ending = new AbortController();
  /** By the monotonic clock. */
  #last = Infinity;

  constructor(of: PostOptions) {
    this.#of = of;
    const attributes = new ListedAttributes();
    for (const [key, value] of of.resource) attributes.add(key, value);
    this.#frame = frameOf(of.to.protocol, of.signal, { attributes: attributes.list });
  }

  empty(): Items {
    return this.#frame.empty();
  }

  /** From now on nothing is tried again for longer than this; what waits to be is tried at once. */
  hurry(ms: number): void {
    this.#last = performance.now() + ms;
    this.#ending.abort();
  }

  /** How many of them the collector has taken. */
  async send(items: Items): Promise<number> {
    const { over, retryMs } = this.#of;
    if (over.aborted) return 0;
    const body = await this.#written(items).catch((problem: unknown) => {
      this.#of.tell(String(problem));
    });
    if (!body) return 0;
    const end = performance.now() + retryMs;
    for (let wait = FIRST_MS; ; wait = Math.min(wait * 2, LONGEST_MS)) {
      const said = await this.#once(body);
      if ("rejected" in said) {
        this.#of.tell(undefined);
        return Math.max(0, items.count - said.rejected);
      }
      this.#of.tell(said.why);
      if (said.afterMs === null) return 0;
      // Gateways that were turned away together do not come back together.
      const pause = (said.afterMs ?? wait / 2) + Math.random() * (said.afterMs ?? wait) * 0.5;
      if (over.aborted || performance.now() + pause > Math.min(end, this.#last)) return 0;
      // Aborted, one is asked once more without a pause.
      const { signal } = this.#ending;
      const until = signal.aborted ? over : AbortSignal.any([over, signal]);
      await sleep(pause, undefined, { ref: false, signal: until }).catch(() => {});
    }
  }

  async #written(items: Items): Promise<Buffer> {
    const bytes = this.#frame.around(items);
    return this.#of.to.gzip ? await compress(bytes, { level: LEVEL }) : bytes;
  }

  /** `afterMs`: it may be tried again, after so long where the collector said it; null: it may not. */
  async #once(
    body: Buffer,
  ): Promise<{ rejected: number } | { why: string; afterMs: number | undefined | null }> {
    const { to, fetch, over } = this.#of;
    const json = to.protocol === "http/json";
    // What `AbortSignal.timeout` and `any` make is there until the time is over, with all that the post had.
    const cut = new AbortController();
    const end = () => cut.abort();
    const late = setTimeout(end, to.timeoutMs);
    over.addEventListener("abort", end);
    try {
      over.throwIfAborted();
      const answer = await fetch(to.url, {
        method: "POST",
        headers: {
          "content-type": json ? "application/json" : "application/x-protobuf",
          "user-agent": "tollgate-otlp",
          ...(to.gzip && { "content-encoding": "gzip" }),
          ...to.headers,
        },
        body,
        signal: cut.signal,
      });
      const { status } = answer;
      if (status >= 200 && status < 300)
        return { rejected: rejectedOf(Buffer.from(await answer.arrayBuffer()), json) };
      const why = `it answers ${status}`;
      if (!AGAIN.includes(status)) return { why, afterMs: null };
      return { why, afterMs: laterBy(answer.headers.get("retry-after")) };
    } catch (problem) {
      const { code, message } = problem as Error & { code?: string };
      return { why: code ?? message, afterMs: undefined };
    } finally {
      clearTimeout(late);
      over.removeEventListener("abort", end);
    }
  }
}

/** Seconds, or a date. */
function laterBy(said: string | null): number | undefined {
  if (said === null || said === "") return undefined;
  const seconds = Number(said);
  const ms = Number.isNaN(seconds) ? Date.parse(said) - Date.now() : seconds * 1_000;
  return Number.isNaN(ms) ? undefined : Math.max(0, ms);
}
