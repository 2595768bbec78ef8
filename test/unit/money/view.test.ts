import * as fc from "fast-check";
import { expect, it } from "vitest";
import { convert, fixedRate, parseRates, rateOn } from "../../../src/money/view.ts";

it("an amount is converted with the margin, and rounded once, half to even", () => {
  const rate = rateOn(fixedRate("0.92"), "2026-11-01");
  expect(convert(1_000_000_000n, rate, "0")).toBe(920_000_000n);
  expect(convert(1_000_000_000n, rate, "12.5")).toBe(1_035_000_000n);
  expect(convert(-1_000_000_000n, rate, "12.5")).toBe(-1_035_000_000n);
  expect(convert(1n, rateOn(fixedRate("0.5"), ""), "0")).toBe(0n);
  expect(convert(3n, rateOn(fixedRate("0.5"), ""), "0")).toBe(2n);
});

it("law: without margin and at a rate of 1, an amount stays the same", () => {
  fc.assert(
    fc.property(fc.bigInt({ min: -(10n ** 20n), max: 10n ** 20n }), (nano) => {
      expect(convert(nano, rateOn(fixedRate("1"), ""), "0")).toBe(nano);
    }),
  );
});

it("the rate is that of the day, or of the last day before it", () => {
  const rates = parseRates("date,rate\n2026-11-02,0.93\n2026-10-30,0.92\n", "eur.csv");
  expect(rateOn(rates, "2026-10-30")).toBe(920_000_000n);
  expect(rateOn(rates, "2026-11-01")).toBe(920_000_000n);
  expect(rateOn(rates, "2026-11-02")).toBe(930_000_000n);
  expect(() => rateOn(rates, "2026-10-29")).toThrow(/No exchange rate is known for 2026-10-29/);
});

it("a file with an invalid line is rejected with the line", () => {
  expect(() => parseRates("day,eur\n", "eur.csv")).toThrow(/must have the columns date and rate/);
  for (const line of [
    "2026-11-02,0",
    "2026-11-02,-1",
    "2026-11-02,1e3",
    "yesterday,1",
    "2026-11-02",
  ])
    expect(() => parseRates(`date,rate\n2026-11-01,1\n${line}\n`, "eur.csv")).toThrow(/eur\.csv:3/);
});
