import { expect, it } from "vitest";
import { maxShutdownMs, LameDuck } from "../../../src/server/lame-duck.ts";
import type { Log } from "../../../src/lib/log/log.ts";

function duck() {
  const said: unknown[] = [];
  const log = { info: (of: object) => void said.push(of) } as unknown as Log;
  const made = new LameDuck();
  const announce = (announceMs: number | undefined, asked: boolean) =>
    made.waitForBalancers({ announceMs, timeoutMs: 1 }, asked, log);
  return { made, said, announce };
}

it("a shutdown without health checks is not announced, unless configured", async () => {
  const { said, announce } = duck();
  await announce(undefined, false);
  await announce(0, true);
  expect(said).toEqual([]);
  await announce(1, false);
  expect(said).toEqual([{ ms: 1 }]);
});

it("a client of /readyz sees the shutdown before the port closes; a second signal ends the wait", async () => {
  const { made, said, announce } = duck();
  const over = announce(undefined, true);
  expect(said).toEqual([{ ms: 5_000 }]);
  made.cancel();
  await over;
  await announce(60_000, true);
  expect(said).toHaveLength(1);
});

it("a supervisor's timeout includes both times", () => {
  expect(maxShutdownMs({ announceMs: 2, timeoutMs: 10 }, false)).toBe(20_012);
  const interactive = { announceMs: undefined, timeoutMs: 10 };
  expect(maxShutdownMs(interactive, true)).toBe(40_010);
});
