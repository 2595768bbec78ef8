// Parses and formats durations and sizes. A duration must have a unit, because any default unit
// would be a guess.

const TIME = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;
const SIZE = {
  B: 1,
  KB: 1_000,
  KiB: 1_024,
  MB: 1_000_000,
  MiB: 1_048_576,
  GB: 1_000_000_000,
  GiB: 1_073_741_824,
} as const;

const NUMBER = String.raw`\d{1,12}(?:\.\d{1,3})?`;

/**
 * JSON Schema patterns for the input of `parseDuration` and `parseSize`. A size without a unit is
 * in bytes.
 */
export const DURATION_PATTERN = String.raw`^${NUMBER}(?:ms|s|m|h|d)$`;
export const SIZE_PATTERN = String.raw`^(?:${NUMBER} ?(?:B|[KMG]i?B)|\d{1,12})$`;

/**
 * Longest timer in milliseconds. Node stores delays in 32 bits, so a longer timer fires
 * immediately.
 */
export const MAX_TIMER_MS = 2 ** 31 - 1;

/** Converts "250ms", "5s", "1.5m", "2h", "1d" to milliseconds. Undefined if the text is invalid. */
export const parseDuration = (text: string): number | undefined =>
  parseWithUnit(text, DURATION_PATTERN, TIME);

/** Converts "512KiB", "32 MiB", "1GB", "4096" to bytes. Undefined if the text is invalid. */
export const parseSize = (text: string): number | undefined =>
  parseWithUnit(text, SIZE_PATTERN, SIZE);

/** Formats a duration in the largest unit that divides it exactly. */
export const formatDuration = (ms: number): string => formatWithUnit(ms, TIME);
export const formatSize = (bytes: number): string => formatWithUnit(bytes, SIZE);

function parseWithUnit(
  text: string,
  pattern: string,
  units: Readonly<Record<string, number>>,
): number | undefined {
  if (!new RegExp(pattern).test(text)) return undefined;
  const [, amount, unit] = /^([\d.]+) ?(\D*)$/.exec(text)!;
  return Math.round(Number(amount) * (unit === "" ? 1 : units[unit!]!));
}

function formatWithUnit(amount: number, units: Readonly<Record<string, number>>): string {
  const [unit, size] = Object.entries(units).findLast(
    ([, size], i) => i === 0 || (amount !== 0 && amount % size === 0),
  )!;
  return `${amount / size}${unit}`;
}
