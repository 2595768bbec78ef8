import type { FailurePoint } from "../../model/call-retry.ts";
import type { ProviderClient } from "../../plugin/call.ts";
import { readRetryAfterMs } from "../../protocols/failure/retry-delay.ts";
import { trackBody } from "./tracked-body.ts";

type Fetch = ProviderClient["fetch"];

/** What one call has asked for by itself. */
export interface PluginFetch {
  readonly fetch: Fetch;
  /** Whether a request with a body was answered with success: its provider may have taken the work on. */
  accepted(): boolean;
  /** Milliseconds until a retry, if the provider refused the last request and named a time. */
  retryAfterMs(): number | undefined;
  /** Ends bodies that nothing has read to their end. */
  release(): void;
}

/**
 * What an endpoint that sends by itself asks for with a body may be the work itself: a provider that was given up before its answer
 * was whole may have taken it on. A whole answer says whether it did.
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
      // A scheme that signs asks before anything is sent.
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
