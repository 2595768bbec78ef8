// Limits of keys in gateway.yaml: dollars become nano-dollars, exactly.
import * as fc from "fast-check";
import { expect, it, onTestFinished } from "vitest";
import type { Identity } from "tollgate/plugin";
import { createTestContext } from "tollgate/testing";
import { formatDecimal } from "../../src/money/decimal.ts";
import auth from "../../plugins/middleware/auth.ts";

const digest = "5e884898da28047151d0e56f8dc6292773603d0d6aabbdd62a11ef721d1542d8";

async function limitsOf(limits: readonly string[]) {
  const lent = createTestContext();
  onTestFinished(() => lent.end());
  const hooks = await auth.setup(
    { anonymous: false, keys: [{ id: "ci", digest, limits }] } as never,
    lent.ctx,
  );
  let who: Identity | undefined;
  await hooks.admit!({ identify: (one: Identity) => (who = one) } as never, "password");
  return who!.limits;
}

it("a budget in dollars is converted exactly to nano-dollars", async () => {
  await fc.assert(
    fc.asyncProperty(fc.bigInt(0n, 10n ** 17n), async (nano) => {
      expect(await limitsOf([`usd=${formatDecimal(nano, 9)}/month`])).toEqual([
        { scope: "key:ci", unit: "nano_usd", max: nano, per: "month" },
      ]);
    }),
  );
});

it("other limits are whole numbers", async () => {
  expect(await limitsOf(["requests=60/minute", "concurrent=4"])).toEqual([
    { scope: "key:ci", unit: "requests", max: 60, per: "minute" },
    { scope: "key:ci", unit: "concurrent", max: 4, per: "open" },
  ]);
});
