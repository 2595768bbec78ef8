// Sends one batch to the collector: encodes, compresses, and posts it, and retries if the
// collector's response allows that.
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import type { Context } from "tollgate/plugin";
import { Attributes } from "./attributes.ts";
import { createEnvelope, type ItemBatch, type MessageEnvelope } from "./message-envelope.ts";
import type { Destination } from "./settings.ts";
import type { Signal } from "./message-shapes.ts";

const compress = promisify(gzip);

/**
 * Spans are similar, so the fastest level already compresses them to 10%, in a quarter of the
 * default level's time.
 */
const GZIP_LEVEL = 1;

/** Statuses after which a retry may succeed. Connection failures are retried too. */
const RETRYABLE_STATUSES: readonly number[] = [429, 502, 503, 504];
const INITIAL_RETRY_MS = 1_000;
const MAX_RETRY_DELAY_MS = 30_000;

export interface HttpExporterOptions {
  readonly signal: Signal;
  readonly destination: Destination;
  readonly resource: ReadonlyMap<string, string>;
  /** Maximum time for retries of a batch, in milliseconds. */
  readonly retryMs: number;
  readonly fetch: Context["fetch"];
  /**
   * Aborts when the config generation ends. Requests in flight are canceled and no more are sent.
   */
  readonly abortSignal: AbortSignal;
  /**
   * Called on each change of state, with the reason if the collector stopped accepting items, or
   * undefined if it accepts them.
   */
  readonly onStateChange: (why: string | undefined) => void;
}

export class HttpExporter {
  readonly #options: HttpExporterOptions;
  readonly #envelope: MessageEnvelope;
  readonly #deadlineController = new AbortController();
  /** Deadline for retries, on the monotonic clock. */
  #deadline = Infinity;

  constructor(of: HttpExporterOptions) {
    this.#options = of;
    const attributes = new Attributes();
    for (const [key, value] of of.resource) attributes.add(key, value);
    this.#envelope = createEnvelope(of.destination.protocol, of.signal, {
      attributes,
    });
  }

  createBatch(): ItemBatch {
    return this.#envelope.createBatch();
  }

  /** Limits further retries to this time. Pending retries are sent immediately. */
  limitRetries(ms: number): void {
    this.#deadline = performance.now() + ms;
    this.#deadlineController.abort();
  }

  /** Sends a batch and returns the number of items that the collector accepted. */
  async send(items: ItemBatch): Promise<number> {
    const { abortSignal, retryMs } = this.#options;
    if (abortSignal.aborted) return 0;
    const body = await this.#encode(items).catch((problem: unknown) => {
      this.#options.onStateChange(String(problem));
    });
    if (!body) return 0;
    const end = performance.now() + retryMs;
    for (let wait = INITIAL_RETRY_MS; ; wait = Math.min(wait * 2, MAX_RETRY_DELAY_MS)) {
      const result = await this.#sendOnce(body);
      if ("rejected" in result) {
        this.#options.onStateChange(undefined);
        return Math.max(0, items.count - result.rejected);
      }
      this.#options.onStateChange(result.why);
      if (result.afterMs === null) return 0;
      // Jitter keeps gateways that failed together from retrying together.
      const pause = (result.afterMs ?? wait / 2) + Math.random() * (result.afterMs ?? wait) * 0.5;
      if (abortSignal.aborted || performance.now() + pause > Math.min(end, this.#deadline))
        return 0;
      // After the limit is set, one retry is sent without a delay.
      const { signal } = this.#deadlineController;
      const until = signal.aborted ? abortSignal : AbortSignal.any([abortSignal, signal]);
      await sleep(pause, undefined, { ref: false, signal: until }).catch(() => {});
    }
  }

  async #encode(items: ItemBatch): Promise<Buffer> {
    const bytes = items.encode();
    return this.#options.destination.gzip ? await compress(bytes, { level: GZIP_LEVEL }) : bytes;
  }

  /**
   * Sends a batch once. `afterMs` is the delay that the collector requests before a retry,
   * undefined if it requests none, or null if no retry is allowed.
   */
  async #sendOnce(
    body: Buffer,
  ): Promise<{ rejected: number } | { why: string; afterMs: number | undefined | null }> {
    const { destination, fetch, abortSignal } = this.#options;
    const json = destination.protocol === "http/json";
    // Signals from `AbortSignal.timeout` and `AbortSignal.any` stay in memory until the timeout,
    // together with all objects that the request references.
    const cut = new AbortController();
    const end = () => cut.abort();
    const late = setTimeout(end, destination.timeoutMs);
    abortSignal.addEventListener("abort", end);
    try {
      abortSignal.throwIfAborted();
      const answer = await fetch(destination.url, {
        method: "POST",
        headers: {
          "content-type": json ? "application/json" : "application/x-protobuf",
          "user-agent": "tollgate-otlp",
          ...(destination.gzip && { "content-encoding": "gzip" }),
          ...destination.headers,
        },
        body,
        signal: cut.signal,
      });
      const { status } = answer;
      if (status >= 200 && status < 300)
        return { rejected: rejectedCount(Buffer.from(await answer.arrayBuffer()), json) };
      const why = `the collector returned status ${status}`;
      if (!RETRYABLE_STATUSES.includes(status)) return { why, afterMs: null };
      return { why, afterMs: parseRetryAfter(answer.headers.get("retry-after")) };
    } catch (problem) {
      const { code, message } = problem as Error & { code?: string };
      return { why: code ?? message, afterMs: undefined };
    } finally {
      clearTimeout(late);
      abortSignal.removeEventListener("abort", end);
    }
  }
}

/** Parses a retry-after header, which contains seconds or a date. */
function parseRetryAfter(header: string | null): number | undefined {
  if (header === null || header === "") return undefined;
  const seconds = Number(header);
  const ms = Number.isNaN(seconds) ? Date.parse(header) - Date.now() : seconds * 1_000;
  return Number.isNaN(ms) ? undefined : Math.max(0, ms);
}

// Returns the number of items of an accepted batch that the collector rejected, from
// `partialSuccess` of a JSON or protobuf response.

export function rejectedCount(answer: Buffer, json: boolean): number {
  const rejected = json ? rejectedInJson(answer) : rejectedInProtobuf(answer);
  return Number.isSafeInteger(rejected) && rejected > 0 ? rejected : 0;
}

const REJECTED_FIELDS = ["rejectedSpans", "rejectedDataPoints", "rejectedLogRecords"];

function rejectedInJson(answer: Buffer): number {
  try {
    const { partialSuccess } = JSON.parse(answer.toString()) as {
      partialSuccess?: { [name: string]: unknown };
    };
    return Number(
      REJECTED_FIELDS.map((name) => partialSuccess?.[name]).find((count) => count !== undefined),
    );
  } catch {
    return 0;
  }
}

const MESSAGE = 0x0a;
const COUNT = 0x08;

/**
 * For all three signals, field 1 of the response is the message, and field 1 of that message is the
 * count.
 */
function rejectedInProtobuf(answer: Buffer): number {
  if (answer[0] !== MESSAGE) return 0;
  const [, at] = readVarint(answer, 1);
  return answer[at] === COUNT ? readVarint(answer, at + 1)[0] : 0;
}

/** Returns a number and the offset of its end. */
function readVarint(bytes: Buffer, from: number): [value: number, end: number] {
  let value = 0;
  for (let i = 0; i < 8; i++) {
    const byte = bytes[from + i] ?? 0;
    value += (byte & 0x7f) * 128 ** i;
    if (byte < 0x80) return [value, from + i + 1];
  }
  return [0, from];
}
