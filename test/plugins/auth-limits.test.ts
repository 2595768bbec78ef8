// Budgets of keys in gateway.yaml, in dollars and in nano-dollars: the same amount, to the last digit.
import * as fc from "fast-check";
import { expect, it, onTestFinished } from "vitest";
import type { Identity } from "tollgate/plugin";
import { context } from "tollgate/testing";
import { formatDecimal } from "../../src/money/decimal.ts";
import auth from "../../plugins/middleware/auth.ts";

const digest = "5e884898da28047151d0e56f8dc6292773603d0d6aabbdd62a11ef721d1542d8";
const options = (limits: readonly object[]) =>
  ({ anonymous: false, keys: [{ id: "ci", digest, limits }] }) as never;

async function limitsOf(limits: readonly object[]) {
  const lent = context();
  onTestFinished(() => lent.end());
  const hooks = await auth.setup(options(limits), lent.ctx);
  let who: Identity | undefined;
  await hooks.admit!({ identify: (one: Identity) => (who = one) } as never, "password");
  return who!.limits;
}

it("a budget in dollars is one in nano-dollars, exactly", async () => {
  await fc.assert(
    fc.asyncProperty(fc.bigInt(0n, 10n ** 17n), async (nano) => {
      const max = formatDecimal(nano, 9);
      expect(await limitsOf([{ unit: "usd", max, per: "month" }])).toEqual([
        { scope: "key:ci", unit: "nano_usd", max: nano, per: "month" },
      ]);
    }),
  );
  expect(await limitsOf([{ unit: "usd", max: 0.1, per: "day" }])).toMatchObject([
    { max: 100_000_000n },
  ]);
});

it("others are whole numbers as before", async () => {
  expect(
    await limitsOf([
      { unit: "nano_usd", max: 5_000_000_000, per: "month" },
      { unit: "requests", max: 60, per: "minute" },
    ]),
  ).toMatchObject([{ unit: "nano_usd", max: 5_000_000_000 }, { max: 60 }]);
});

it.each([
  ["usd", "1e3"],
  ["usd", "-1"],
  ["usd", "0.1234567890"],
  ["usd", "five"],
  ["requests", 1.5],
  ["requests", "many"],
  ["nano_usd", -1],
])("%s: %s is no amount, and check says so", (unit, max) => {
  const problems = [...auth.check!(options([{ unit, max, per: "day" }]))];
  expect(problems).toMatchObject([{ path: "/keys/0/limits/0/max" }]);
});
