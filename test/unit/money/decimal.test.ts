import { describe, expect, it } from "vitest";
import * as fc from "fast-check";
import {
  formatDecimal,
  roundHalfEven,
  toMillionths,
  parseDecimal,
  formatUsd,
  nanoToDecimal,
  parseUsd,
} from "../../../src/money/decimal.ts";

describe("decimals", () => {
  it("are parsed and formatted without a change, in any size", () => {
    fc.assert(
      fc.property(fc.bigInt(), fc.nat(12), (value, places) => {
        expect(parseDecimal(formatDecimal(value, places), places)).toBe(value);
      }),
    );
  });
  it("reject invalid text, and text that would need rounding", () => {
    for (const text of ["", "1e3", "1,000", ".5", "5.", "0x1", "NaN", "1 ", "+1", "--1"])
      expect(() => parseDecimal(text, 9), text).toThrow();
    expect(() => parseDecimal("0.1234", 3)).toThrow();
    expect(parseDecimal("0.1230", 3)).toBe(123n);
  });
  it("ties are rounded to even", () => {
    const rounded = [1n, 2n, 3n, 5n, 7n].map((n) => roundHalfEven({ n, d: 2n }));
    expect(rounded).toEqual([0n, 1n, 2n, 2n, 4n]);
  });
  it("counts are exact to a millionth", () => {
    expect(toMillionths(0.1)).toBe(100_000n);
    expect(toMillionths(1.048576)).toBe(1_048_576n);
    expect(toMillionths(2 ** 53 - 1)).toBe((2n ** 53n - 1n) * 1_000_000n);
    expect(() => toMillionths(-1)).toThrow();
  });
});

describe("formatted dollars", () => {
  it("have at least two decimal places, and none is rounded", () => {
    expect(formatUsd(1_234_000n)).toBe("$0.001234");
    expect(formatUsd(1_500_000_000n)).toBe("$1.50");
    expect(formatUsd(1n)).toBe("$0.000000001");
    expect(formatUsd(0n)).toBe("$0.00");
    expect(formatUsd(-3_000_000_000n)).toBe("-$3.00");
    expect(formatUsd(2n ** 63n - 1n)).toBe("$9223372036.854775807");
  });
  it("are parsed back", () => {
    fc.assert(
      fc.property(fc.bigInt(0n, 2n ** 63n), (n) => {
        expect(parseUsd(formatUsd(n))).toBe(n);
        expect(parseUsd(nanoToDecimal(n))).toBe(n);
      }),
    );
  });
});
