import { expect, it } from "vitest";
import { traces } from "./traces.ts";

const SHORT = {
  requests: 300,
  seed: 3,
  protocol: "http/protobuf",
  collector: "",
  workers: 1,
  say: () => {},
};

// `.ci/run` runs them without a defect, with thousands of requests.
it.concurrent.each([
  ["orphan", /: no attempt$/m],
  ["monoglot", /: no gen_ai\.usage\.cache_write/m],
  ["repeating", /is there twice$/m],
  ["mistaken", /has no line$/m],
  ["same", /: tollgate\.retry .* in place of tollgate\.fallback/m],
  ["uncounted", /^tollgate\.calls: \d+ in place of/m],
  ["rounding", /^\S+\.\d: \d+ nano-dollars in place of \d+$/m],
  ["forwarding", /: not handed on$/m],
] as const)("a gateway whose traces are %s is detected", async (mutant, found) => {
  const { wrong } = await traces({ ...SHORT, mutant });
  expect(wrong.join("\n")).toMatch(found);
});
