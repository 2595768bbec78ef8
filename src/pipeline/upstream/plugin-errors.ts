// A provider's own code on the way of a call: an endpoint that makes its answer itself, a scheme that signs. What it throws without
// words is its provider's failure, as a broken line is: others may answer, and it rests where it keeps failing.
import { createFault, getFault } from "../../model/error.ts";
import type { ModelEvent } from "../../model/event.ts";
import type { HostCall } from "../exchange/call.ts";
import { checkEvent } from "../hooks/hook-result-checks.ts";
import { attributeFault } from "../faults/fault-source.ts";

const YIELD_EVERY_EVENTS = 512;

export function toProviderFault(call: HostCall, problem: unknown): unknown {
  const said = getFault(problem);
  if (said) {
    // A plugin need not read the header itself. Of which kinds a client is told, `retryAfterOf` decides, as for any provider.
    said.retryAfterMs ??= call.retryAfterMs;
    return problem;
  }
  const { exchange: x, provider } = call;
  x["~"].gen.log.error(
    { request: x.id, plugin: `providers.${provider}`, err: problem },
    "a provider's own code failed",
  );
  const failed = createFault(
    "upstream",
    "Its own code failed. The request id names it in the log.",
    {
      code: "plugin_failed",
      cause: problem,
    },
  );
  return attributeFault(failed, "target", provider);
}

/** The events of an endpoint that makes its answer itself, as far as they can be used. */
export async function* validateEvents(
  call: HostCall,
  events: AsyncIterable<ModelEvent>,
): AsyncGenerator<ModelEvent> {
  let made = 0;
  try {
    for await (const event of events) {
      checkEvent(event);
      yield event;
      // What never waits for anything would let nothing else be done.
      if (++made % YIELD_EVERY_EVENTS === 0) await new Promise(setImmediate);
    }
  } catch (problem) {
    throw toProviderFault(call, problem);
  }
}
