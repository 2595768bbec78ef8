import { expect, it } from "vitest";
import { NIGHTLY } from "../../kit/law-effort.ts";
import { cuts } from "./truncation.ts";

// One in 200 bytes in the nightly run, one in 2,000 otherwise, and always between events.
it("SDKs raise wherever a response is truncated before its finish", async () => {
  const { wrong, counts } = await cuts({ seed: 7, every: NIGHTLY ? 200 : 2_000 });
  expect(wrong).toEqual([]);
  expect(counts["raised"]).toBeGreaterThan(50);
});

it("responses without a gateway are found to look complete", async () => {
  expect((await cuts({ seed: 7, every: 8_000, mutant: "bare" })).wrong.length).toBeGreaterThan(0);
});
