import { spawnSync } from "node:child_process";
import { beforeAll, describe, expect, it } from "vitest";
import { metrics } from "./metrics.ts";
import { install } from "./prometheus-tools.ts";

const SHORT = { requests: 150, names: 130, seed: 1 };
const hasPrometheus = spawnSync("promtool", ["--version"]).status === 0;

// `.ci/run` runs it without a defect, and the nightly run with thousands of requests.
describe.skipIf(!hasPrometheus)("a gateway whose metrics are", () => {
  beforeAll(install, 600_000);

  it.concurrent.each([
    ["open", /series are of models that are made up$/m],
    ["wide", /^a label has \d+ values$/m],
    ["forgetful", /^answered: \d+ in Prometheus, and it is \d+$/m],
    ["rounding", /^spend in nano-dollars: \d+ in Prometheus, and it is \d+$/m],
    ["patient", /^fallbacks: 0 in Prometheus, and it is \d+$/m],
    ["endless", /EOF/],
  ] as const)("%s is detected", async (mutant, found) => {
    const { wrong } = await metrics({ ...SHORT, mutant }, () => {});
    expect(wrong.join("\n")).toMatch(found);
  });
});
