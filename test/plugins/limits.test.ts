// The limits of the middleware `limits`: for each key, unless the key has a limit of the same unit.
import { expect, it, onTestFinished } from "vitest";
import type { Call, Limit } from "tollgate/plugin";
import { createTestContext } from "tollgate/testing";
import limits from "../../plugins/middleware/limits.ts";

const own = (unit: Limit["unit"]): Limit => ({ scope: "key:k", unit, max: 1, per: "total" });

async function mounted(...texts: string[]) {
  const lent = createTestContext();
  onTestFinished(() => lent.end());
  const hooks = await limits.setup({ limits: texts, hold: "expected" } as never, lent.ctx);
  return {
    occupied(has: readonly Limit[] = []) {
      const found: [string, number][] = [];
      const occupy = (scope: string, most: number) => void found.push([scope, most]);
      void hooks.admit!(
        { identity: { id: "k", limits: has }, acquireSlot: occupy } as never,
        undefined,
      );
      return found;
    },
    charged(has: readonly Limit[] = [], n = 1) {
      const call = { n, exchange: { identity: { id: "k", limits: has } } } as never as Call;
      return hooks.charge!(call)?.limits;
    },
  };
}

it("a key gets each default limit whose unit it does not limit itself", async () => {
  const { charged, occupied } = await mounted(
    "requests=600/minute",
    "requests=5000/day",
    "concurrent=50",
    "usd=2.50/day",
  );
  const requests = [
    { scope: "key:k", unit: "requests", max: 600, per: "minute" },
    { scope: "key:k", unit: "requests", max: 5000, per: "day" },
  ];
  const open = { scope: "key:k", unit: "concurrent", max: 50, per: "open" };
  const money = { scope: "key:k", unit: "nano_usd", max: 2_500_000_000n, per: "day" };
  expect(charged()).toEqual([...requests, open, money]);
  expect(charged([own("requests"), own("nano_usd")])).toEqual([open]);
  expect(charged([own("concurrent")])).toEqual([...requests, money]);
  expect([occupied(), occupied([own("requests")]), occupied([own("concurrent")])]).toEqual([
    [["key:k", 50]],
    [["key:k", 50]],
    [],
  ]);
});

it("a further attempt does not count as another request", async () => {
  const { charged } = await mounted("requests=600/minute", "tokens=1000/day");
  const units = (n: number) => charged([], n)?.map(({ unit }) => unit);
  expect([units(1), units(2)]).toEqual([["requests", "tokens"], ["tokens"]]);
});

it("without limits, only the amounts for budgets are declared", async () => {
  const { charged, occupied } = await mounted();
  expect([charged(), occupied()]).toEqual([[], []]);
});
