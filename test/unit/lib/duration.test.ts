import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  DURATION_PATTERN,
  parseDuration,
  parseSize,
  formatDuration,
  formatSize,
  SIZE_PATTERN,
} from "../../../src/lib/time/units.ts";

describe("formatted values can be parsed again", () => {
  const amount = fc.oneof(
    fc.nat(),
    fc.nat(100_000).map((n) => n * 1000),
    fc.nat(100).map((n) => n * 86_400_000),
  );
  it("durations", () => {
    fc.assert(
      fc.property(amount, (ms) => {
        expect(parseDuration(formatDuration(ms))).toBe(ms);
      }),
    );
  });
  it("sizes", () => {
    fc.assert(
      fc.property(amount, (bytes) => {
        expect(parseSize(formatSize(bytes))).toBe(bytes);
      }),
    );
  });
});

it("parses exactly what the pattern for editors allows", () => {
  const text = fc.stringMatching(/^[0-9]{0,4}[.]?[0-9]{0,2} ?(ms|s|m|h|d|B|KB|KiB|MiB|GB|x)?$/);
  fc.assert(
    fc.property(text, (t) => {
      expect(parseDuration(t) !== undefined).toBe(new RegExp(DURATION_PATTERN).test(t));
      expect(parseSize(t) !== undefined).toBe(new RegExp(SIZE_PATTERN).test(t));
    }),
  );
});

it.each([
  ["250ms", 250],
  ["300s", 300_000],
  ["1.5m", 90_000],
  ["2h", 7_200_000],
  ["1d", 86_400_000],
  ["300", undefined],
  ["5 s", undefined],
  ["-1s", undefined],
  ["1e3s", undefined],
  ["s", undefined],
  ["5sec", undefined],
])("%s is %s ms", (text, ms) => expect(parseDuration(text)).toBe(ms));

it.each([
  ["32MiB", 33_554_432],
  ["32 MiB", 33_554_432],
  ["1.5KB", 1500],
  ["10MB", 10_000_000],
  ["1GiB", 1_073_741_824],
  ["512B", 512],
  ["4096", 4096],
  ["32mb", undefined],
  ["lots", undefined],
])("%s is %s bytes", (text, bytes) => expect(parseSize(text)).toBe(bytes));

it("formats in the largest exact unit", () => {
  expect([0, 250, 1000, 90_000, 300_000, 3_600_000].map(formatDuration)).toEqual([
    "0ms",
    "250ms",
    "1s",
    "90s",
    "5m",
    "1h",
  ]);
  expect([1, 1024, 33_554_432, 1_000_000].map(formatSize)).toEqual(["1B", "1KiB", "32MiB", "1MB"]);
});
