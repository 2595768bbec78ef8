// What limits count and in which time, for schemas and checks that want each of the words.

/** What can be counted, but for money. */
export const COUNTED_UNITS = [
  "requests",
  "concurrent",
  "tokens",
  "input",
  "output",
  "images",
  "characters",
  "seconds",
  "searches",
] as const;
/** Each `Limit.unit`. */
export const LIMIT_UNITS = [...COUNTED_UNITS, "nano_usd"] as const;
/** Each `Limit.per`. */
export const LIMIT_SPANS = ["minute", "hour", "day", "week", "month", "total", "open"] as const;
