import type { FailureContext } from "../../src/pipeline/targets/target-status.ts";

let n = 0;

/** A call with the key of a test gateway, in a request of its own by default. */
export const createCallFacts = (more: Partial<FailureContext> = {}): FailureContext => ({
  reason: "plain",
  startedAt: 0,
  client: "k1",
  requestId: `request-${n++}`,
  isClientRetry: false,
  isUnsent: false,
  limitScope: undefined,
  ...more,
});
