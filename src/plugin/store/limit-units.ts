// Units and windows of limits, for schemas and checks that enumerate them.

/** Units that can be counted, except money. */
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
  "calls",
] as const;
/** All values of `Limit.unit`. */
export const LIMIT_UNITS = [...COUNTED_UNITS, "nano_usd"] as const;
/** All values of `Limit.per`. */
export const LIMIT_SPANS = ["minute", "hour", "day", "week", "month", "total", "open"] as const;
