import type { FailurePoint } from "../../model/call-retry.ts";
import type { ProviderClient } from "../../plugin/call.ts";
import { readRetryAfterMs } from "../../protocols/failure/retry-delay.ts";

type Fetch = ProviderClient["fetch"];

/** Tracks the requests that a plugin sends through `fetch` during one call. */
export interface PluginFetch {
  readonly fetch: Fetch;
  /**
   * Whether a request with a body was answered with success, so the provider may have accepted the
   * work.
   */
  accepted(): boolean;
  /**
   * Milliseconds until a retry, if the provider rejected the last request and sent a retry time.
   */
  retryAfterMs(): number | undefined;
  /** Cancels response bodies that were not read to their end. */
  release(): void;
}

/**
 * Wraps the `fetch` of an endpoint that sends requests itself. A request with a body may be the
 * work itself. If it is canceled before the response is complete, the provider may have accepted
 * the work. A complete response shows whether it did.
 */
export function trackPluginFetch(
  call: { failurePoint: FailurePoint; readonly signal: AbortSignal },
  fetch: Fetch,
): PluginFetch {
  let pending = 0;
  let accepted = false;
  let retryAfterMs: number | undefined;
  const open = new Set<ReadableStreamDefaultReader<Uint8Array>>();
  const release = () => {
    for (const reader of open) void reader.cancel().catch(() => {});
    open.clear();
  };
  return {
    release,
    accepted: () => accepted,
    retryAfterMs: () => retryAfterMs,
    async fetch(url, init) {
      // A scheme that signs requests calls `fetch` before anything of the work is sent.
      const mayBeWork = call.failurePoint !== "unsent" && init?.body !== undefined;
      if (mayBeWork) {
        pending++;
        call.failurePoint = "no_response";
      }
      const onDone = () => {
        if (!mayBeWork) return;
        pending--;
        const wasAborted = call.signal.aborted || init.signal?.aborted === true;
        if (pending === 0 && !wasAborted) call.failurePoint = "rejected";
      };
      let response: Response;
      try {
        response = await fetch(url, init);
      } catch (problem) {
        onDone();
        throw problem;
      }
      accepted ||= mayBeWork && response.ok;
      retryAfterMs = response.ok
        ? undefined
        : readRetryAfterMs(Object.fromEntries(response.headers));
      const reader = response.body?.getReader();
      if (!reader) {
        onDone();
        return response;
      }
      open.add(reader);
      return trackBody(
        {
          next: () => reader.read().then(({ value }) => value),
          cancel: () => void reader.cancel().catch(() => {}),
        },
        response,
        () => {
          open.delete(reader);
          onDone();
        },
      );
    },
  };
}

// An endpoint that sends requests itself receives a response as soon as its headers arrive. The
// host is still notified when the body ends.
/** Statuses of responses that have no body. */
const BODILESS_STATUSES = new Set([101, 204, 205, 304]);
export const hasBody = (status: number): boolean => !BODILESS_STATUSES.has(status);

interface BodySource {
  /** Returns the next chunk, or undefined at the end. Rejects if the body is truncated. */
  next(): Promise<Uint8Array | undefined>;
  /** Called once, when the reader cancels. */
  cancel(): void;
}

/**
 * Returns a response that takes chunks from `source` only as they are read.
 * @param over Called once: at the end of the body, when it is truncated, or when the reader cancels
 *   it.
 */
export function trackBody(
  source: BodySource,
  { status, headers }: { readonly status: number; readonly headers: Headers },
  onDone: () => void = () => {},
): Response {
  if (!hasBody(status)) {
    source.cancel();
    onDone();
    return new Response(null, { status, headers });
  }
  const body = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          const piece = await source.next();
          if (piece !== undefined) return controller.enqueue(piece);
          onDone();
          controller.close();
        } catch (problem) {
          onDone();
          controller.error(problem);
        }
      },
      cancel() {
        source.cancel();
        onDone();
      },
    },
    { highWaterMark: 0 },
  );
  return new Response(body, { status, headers });
}
