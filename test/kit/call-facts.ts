import type { CallFacts } from "../../src/walk/targets/target-rest.ts";

let n = 0;

/** A call of a scene's key: of a request of its own, unless told. */
export const callFacts = (more: Partial<CallFacts> = {}): CallFacts => ({
  pass: "plain",
  started: 0,
  who: "k1",
  request: `request-${n++}`,
  repeated: false,
  unsent: false,
  scope: undefined,
  ...more,
});
