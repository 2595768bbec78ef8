// The console's forms accept the same limits as the gateway.
import fc from "fast-check";
import { expect, it } from "vitest";
import { COUNTED_UNITS } from "../../../src/plugin/store/limit-units.ts";
import {
  isLimit,
  limitError,
  splitLimits,
  limitTitle,
} from "../../../plugins/observers/console/web/account-text.ts";
import { LIMIT_SCHEMA, parseLimit } from "../../../src/plugin/store/limit.ts";
import { trialCount } from "../../kit/law-effort.ts";

it("a text is a limit in the console exactly if it is one in the gateway", () => {
  const limit = fc.stringMatching(new RegExp(LIMIT_SCHEMA.pattern));
  const part = fc.constantFrom("usd", "tokens", "concurrent", "=", "/", "day", "total", "1", ".5");
  const text = fc.oneof(
    limit,
    fc.string(),
    fc.array(part, { maxLength: 6 }).map((parts) => parts.join("")),
  );
  fc.assert(
    fc.property(text, (each) => {
      expect(isLimit(each)).toBe(parseLimit(each) !== undefined);
    }),
    { numRuns: trialCount(500) },
  );
});

it("a field accepts several limits, and reports the first invalid one", () => {
  expect(splitLimits(" usd=5/month,requests=60/minute\nconcurrent=4 ")).toEqual([
    "usd=5/month",
    "requests=60/minute",
    "concurrent=4",
  ]);
  expect(limitError("")).toBeUndefined();
  expect(limitError("usd=5/month, usd=5")).toMatch(/^Invalid limit "usd=5"/);
});

it.each([
  ["usd=5.50/month", "Spend per month"],
  ["requests=60/minute", "Requests per minute"],
  ["tokens=9/total", "Tokens, lifetime"],
  ["concurrent=4", "Concurrent requests"],
])("%s has the name %s", (text, name) => {
  expect(limitTitle(text)).toBe(name);
});

it("the console knows each unit", () => {
  for (const unit of COUNTED_UNITS.filter((each) => each !== "concurrent"))
    expect([unit, isLimit(`${unit}=5/day`)]).toEqual([unit, true]);
});
