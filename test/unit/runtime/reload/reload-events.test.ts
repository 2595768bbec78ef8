// Reload events for observers: enough to know whether the file on disk is in use, and none twice.
import * as fc from "fast-check";
import { expect, it } from "vitest";
import { isReportable, rejectionReasonOf } from "../../../../src/runtime/reload/reload-rules.ts";
import type { ReloadResult } from "../../../../src/runtime/gateway-api.ts";

const problem = (message: string) =>
  ({
    id: "config/unknown-key",
    severity: "error",
    file: "gateway.yaml",
    line: 3,
    column: 5,
    path: "providers.x",
    message,
  }) as ReloadResult["problems"][number];

const ACCEPTED: ReloadResult = { ok: true, generation: 2, problems: [] };
const SAME: ReloadResult = { ok: true, generation: 1, isUnchanged: true, problems: [] };
const REFUSED: ReloadResult = { ok: false, generation: 1, problems: [problem("unknown key")] };
const OTHERWISE: ReloadResult = {
  ok: false,
  generation: 1,
  problems: [problem("unknown provider")],
};
const STATIC: ReloadResult = {
  ok: false,
  generation: 1,
  problems: [],
  restartKeys: ["listen", "store"],
};

it("after any sequence of reloads, the last event states whether the last one was accepted; no rejection is repeated", () => {
  fc.assert(
    fc.property(fc.array(fc.constantFrom(ACCEPTED, SAME, REFUSED, OTHERWISE, STATIC)), (all) => {
      const told: ReloadResult[] = [];
      let before: ReloadResult | undefined;
      for (const now of all) {
        if (isReportable(before, now)) told.push(now);
        before = now;
        expect(told.at(-1)?.ok ?? true).toBe(now.ok);
      }
      for (const [i, each] of told.entries())
        if (i > 0 && !each.ok) expect(told[i - 1]).not.toBe(each);
    }),
  );
});

it("a rejection states the reason", () => {
  expect(rejectionReasonOf(ACCEPTED)).toBeUndefined();
  expect(rejectionReasonOf(REFUSED)).toBe("gateway.yaml:3:5 providers.x: unknown key");
  expect(
    rejectionReasonOf({ ...REFUSED, problems: [...REFUSED.problems, ...OTHERWISE.problems] }),
  ).toBe("gateway.yaml:3:5 providers.x: unknown key (and 1 more)");
  expect(rejectionReasonOf(STATIC)).toBe("listen, store cannot change without a restart");
});
