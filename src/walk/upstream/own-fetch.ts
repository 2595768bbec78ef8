import type { CallStage } from "../../model/retry.ts";
import type { ProviderAccess } from "../../plugin/call.ts";

type Fetch = ProviderAccess["fetch"];

/**
 * What an endpoint that sends by itself asks for with a body may be the work itself: a provider that was given up before it said
 * anything may have taken it on. What it has answered says whether it did.
 */
export function minding(
  call: { stage: CallStage; readonly signal: AbortSignal },
  fetch: Fetch,
): Fetch {
  let open = 0;
  return async (url, init) => {
    // A scheme that signs asks before anything is sent.
    if (call.stage === "unsent" || init?.body === undefined) return fetch(url, init);
    open++;
    call.stage = "unanswered";
    try {
      return await fetch(url, init);
    } finally {
      open--;
      const gaveUp = call.signal.aborted || init.signal?.aborted === true;
      if (open === 0 && !gaveUp) call.stage = "refused";
    }
  };
}
