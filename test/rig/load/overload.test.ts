import { expect, it } from "vitest";
import { expectCaught } from "../expect-caught.ts";
import { overload } from "./overload.ts";

const SHORT = { seconds: 4, concurrent: 32, seed: 7 };
/** Time limits apply on an idle machine, where the long form checks them. */
const SPEED = /p99|half of the refusals|a second served|to recover/;

it("excess requests are rejected without a row, and no key is affected by another", async () => {
  const { wrong, counts } = await overload(SHORT);
  expect(wrong.filter((line) => !SPEED.test(line))).toEqual([]);
  expect(counts["shed"]).toBeGreaterThan(100);
});

it("a gateway that is slow to reject is detected", async () => {
  await expectCaught(/half of the refusals/, (seed) => overload({ ...SHORT, seed, thinks: 1_000 }));
});
