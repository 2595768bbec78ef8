import { expect, it } from "vitest";
import { KnownRequests } from "../../../src/isolation/known-requests.ts";

it("keeps a request until it ends, and at most 20,000 without an end", () => {
  const told = new KnownRequests<number>();
  for (let n = 0; n < 50_000; n++) {
    told.set(`${n}`, n);
    if (n % 2 === 0) expect(told.remove(`${n}`)).toBe(n);
  }
  const there = Array.from({ length: 50_000 }, (_, n) => told.get(`${n}`)).filter(
    (one) => one !== undefined,
  );
  expect(there.length).toBeLessThanOrEqual(20_000);
  // The newer ones.
  expect(there.slice(-10_000)).toEqual(Array.from({ length: 10_000 }, (_, n) => 30_001 + 2 * n));
  expect(told.get("0")).toBeUndefined();
});

it("keeps the newer of two requests with one ID, and none after its end", () => {
  const told = new KnownRequests<string>();
  told.set("one", "first");
  for (let n = 0; n < 10_000; n++) told.set(`${n}`, "other");
  told.set("one", "second");
  expect(told.remove("one")).toBe("second");
  expect(told.get("one")).toBeUndefined();
});
