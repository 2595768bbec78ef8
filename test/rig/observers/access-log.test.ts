import { expect, it } from "vitest";
import { accessLog } from "./access-log.ts";

// `.ci/run` runs it without a defect, with ten thousand requests.
it.concurrent.each([
  ["forgetful", /^lines: \d+, not \d+$/m],
  ["forging", /^no line of JSON/m],
  ["alike", /^cost: /m],
  ["stuck", /^the file under its name has/m],
  ["silent", /^on the full disk/m],
] as const)("a log that is %s is detected", async (mutant, found) => {
  const { wrong } = await accessLog({ requests: 500, every: 250, seed: 3, mutant }, () => {});
  expect(wrong.join("\n")).toMatch(found);
});
