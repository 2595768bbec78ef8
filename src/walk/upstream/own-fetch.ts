import type { CallStage } from "../../model/retry.ts";
import type { ProviderAccess } from "../../plugin/call.ts";
import { retryAfter } from "../../protocols/failure/retry.ts";
import { watchedBody } from "./watched-body.ts";

type Fetch = ProviderAccess["fetch"];

/** What one call has asked for by itself. */
export interface OwnFetch {
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
export function minding(
  call: { stage: CallStage; readonly signal: AbortSignal },
  fetch: Fetch,
): OwnFetch {
  let asked = 0;
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
      const works = call.stage !== "unsent" && init?.body !== undefined;
      if (works) {
        asked++;
        call.stage = "unanswered";
      }
      const over = () => {
        if (!works) return;
        asked--;
        const gaveUp = call.signal.aborted || init.signal?.aborted === true;
        if (asked === 0 && !gaveUp) call.stage = "refused";
      };
      let answer: Response;
      try {
        answer = await fetch(url, init);
      } catch (problem) {
        over();
        throw problem;
      }
      accepted ||= works && answer.ok;
      retryAfterMs = answer.ok ? undefined : retryAfter(Object.fromEntries(answer.headers));
      const reader = answer.body?.getReader();
      if (!reader) {
        over();
        return answer;
      }
      open.add(reader);
      return watchedBody(
        {
          next: () => reader.read().then(({ value }) => value),
          cancel: () => void reader.cancel().catch(() => {}),
        },
        answer,
        () => {
          open.delete(reader);
          over();
        },
      );
    },
  };
}
