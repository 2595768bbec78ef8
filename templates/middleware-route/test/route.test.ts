// The order of the candidates, and the excluded candidates.
import { createTestContext, fakes } from "tollgate/testing";
import { expect, test } from "vitest";
import plugin from "../src/index.ts";

const PRICES: { readonly [model: string]: bigint | null } = {
  expensive: 2_000_000_000n,
  unknown: null,
  cheap: 1_000n,
  medium: 500_000n,
};

test("tries the cheapest candidate first, and excludes an expensive one with a reason", async () => {
  await using test = createTestContext({ price: ({ info }) => PRICES[info.model] ?? null });
  const { route } = await plugin.setup({ max_usd: 1 }, test.ctx);
  const list = Object.keys(PRICES).map((model) => fakes.candidate({ model }));
  const routed = await route!(list, fakes.exchange());
  expect(
    routed.map((one) => ("candidate" in one ? `${one.code} ${one.candidate.model}` : one.model)),
  ).toEqual(["cheap", "medium", "unknown", "too_expensive expensive"]);
});
