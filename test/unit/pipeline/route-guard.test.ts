// The time limit of a route that its plugin serves.
import { expect, it } from "vitest";
import { guardRoute } from "../../../src/pipeline/hooks/route-guard.ts";
import type { TimerEntry } from "../../../src/pipeline/admission/timer-wheel.ts";
import type { RequestHead, Route, RouteResponse } from "tollgate/plugin";

const breaker = { isHealthy: true, recordFailure() {}, tryEnter: () => true } as never;

/** Returns the time after which a route that never answers is rejected, in minutes. */
async function limitOf(timeoutMs?: number): Promise<number> {
  const entries = new Set<TimerEntry>();
  const timerWheel = {
    add: (entry: TimerEntry) => void entries.add(entry),
    remove: (entry: TimerEntry) => void entries.delete(entry),
  };
  const route = guardRoute<Route>(
    {
      method: "GET",
      path: "/slow",
      ...(timeoutMs !== undefined && { timeoutMs }),
      handle: () => new Promise<RouteResponse>(() => {}),
    },
    { id: "test", log: { warn() {} } as never, timerWheel: timerWheel as never },
    () => breaker,
  );
  const { handle } = route as { handle(x: RequestHead): Promise<RouteResponse> };
  const served = handle({ isHypothetical: true } as unknown as RequestHead).catch(
    (error: Error) => error.message,
  );
  let minutes = 0;
  for (; entries.size > 0; minutes++) for (const entry of entries) entry.onTick(minutes * 60_000);
  expect(await served).toContain("time limit");
  return minutes - 1;
}

it("a route has the time limit that it declares", async () => {
  expect(await limitOf()).toBe(1);
  expect(await limitOf(30 * 60_000)).toBe(30);
});
