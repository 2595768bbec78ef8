// Fields that a translation drops are reported once each, whatever their number.
import { expect, it } from "vitest";
import { HostCall } from "../../../src/pipeline/exchange/call.ts";
import { ownCpuMs } from "../../kit/process/cpu-time.ts";

const attempt = (): HostCall =>
  new HostCall(
    { isStrict: false } as never,
    { mounted: { endpoint: { definition: {} } } } as never,
    1,
  );

it("a hundred thousand warnings take linear time", () => {
  const call = attempt();
  const started = ownCpuMs();
  for (let i = 0; i < 100_000; i++) call.reportLoss(`messages[0].k${i}`, "dropped");
  expect(ownCpuMs() - started).toBeLessThan(2_000);
  expect(call.losses).toHaveLength(100_000);
  expect(call.warningsHeader).toMatch(/^dropped;field=messages\[0\]\.k0, .*, more;count=\d+$/);
});

it("each is reported once, and one field may be lost in two ways", () => {
  const call = attempt();
  for (let i = 0; i < 2; i++) {
    call.reportLoss("tools", "dropped");
    call.reportLoss("tools", "approximated");
    call.reportLoss("n", "dropped");
  }
  expect(call.losses.map(({ field, code }) => `${code} ${field}`)).toEqual([
    "dropped tools",
    "approximated tools",
    "dropped n",
  ]);
});
