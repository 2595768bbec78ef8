import type { JsonObject } from "../model/values.ts";
import type { ResponseContext } from "../plugin/protocol.ts";

/**
 * Returns the usage with the cost in US dollars if the client asked for it. `cost` is null if the
 * cost is not known. Called after the finish was reported.
 */
export const withCost = (usage: JsonObject, to: ResponseContext): JsonObject =>
  to.includesCost === true ? { ...usage, cost: to.costUsd?.() ?? null } : usage;
