// Converts errors of a provider's own code: an endpoint that produces its response itself, or a
// signing scheme. Any other error than a fault counts as the provider's failure, like a broken
// connection. Other candidates may answer, and repeated failures put the target in cooldown.
import { createFault, getFault } from "../../model/error.ts";
import type { ModelEvent } from "../../model/event.ts";
import type { HostCall } from "../exchange/call.ts";
import { checkEvent } from "../hooks/hook-results.ts";
import { attributeFault } from "../faults/fault-source.ts";

const YIELD_EVERY_EVENTS = 512;

export function toProviderFault(call: HostCall, problem: unknown): unknown {
  const said = getFault(problem);
  if (said) {
    // A plugin need not read the header itself. As for any provider, `retryAfterOf` decides for
    // which kinds a client receives the retry time.
    said.retryAfterMs ??= call.retryAfterMs;
    return problem;
  }
  const { exchange: x, provider } = call;
  x.state.gen.log.error(
    { request: x.id, plugin: `providers.${provider}`, err: problem },
    "provider plugin failed",
  );
  const failed = createFault(
    "upstream",
    "The provider plugin failed. See the gateway log for this request ID.",
    {
      code: "plugin_failed",
      cause: problem,
    },
  );
  return attributeFault(failed, "target", provider);
}

/** Validates the events of an endpoint that produces its response itself. */
export async function* validateEvents(
  call: HostCall,
  events: AsyncIterable<ModelEvent>,
): AsyncGenerator<ModelEvent> {
  let made = 0;
  try {
    for await (const event of events) {
      checkEvent(event);
      yield event;
      // A generator that never waits would block all other work.
      if (++made % YIELD_EVERY_EVENTS === 0) await new Promise(setImmediate);
    }
  } catch (problem) {
    throw toProviderFault(call, problem);
  }
}
