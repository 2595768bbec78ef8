// The order that it makes, and what it leaves out.
import { createTestContext, fakes } from "tollgate/testing";
import { expect, test } from "vitest";
import plugin from "../src/index.ts";

const PRICES: { readonly [model: string]: bigint | null } = {
  dear: 2_000_000_000n,
  unknown: null,
  cheap: 1_000n,
  fair: 500_000n,
};

test("what costs least is asked first, what costs too much is not asked, with a reason", async () => {
  await using lent = createTestContext({ price: ({ info }) => PRICES[info.model] ?? null });
  const { route } = await plugin.setup({ most_usd: 1 }, lent.ctx);
  const list = Object.keys(PRICES).map((model) => fakes.candidate({ model }));
  const routed = await route!(list, fakes.exchange());
  expect(
    routed.map((one) => ("candidate" in one ? `${one.code} ${one.candidate.model}` : one.model)),
  ).toEqual(["cheap", "fair", "unknown", "too_dear dear"]);
});
