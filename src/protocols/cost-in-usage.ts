import type { JsonObject } from "../model/values.ts";
import type { ResponseContext } from "../plugin/protocol.ts";

/**
 * Returns the usage with the cost in US dollars if the client asked for it. `cost` is null if the
 * cost is not known. Called after the finish was reported.
 */
export const withCost = <T extends JsonObject | null>(usage: T, to: ResponseContext): T =>
  to.includesCost === true && usage ? { ...usage, cost: to.costUsd?.() ?? null } : usage;
