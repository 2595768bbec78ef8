// Limits: the type with which stores count, and the text form that people and programs write, such
// as usd=5/month. The text form has one schema, one parser, and one formatter. gateway.yaml,
// commands, the admin API, and the options of any plugin with limits use them.
import { fail } from "../../model/error.ts";
import type { Opt } from "../../model/values.ts";
import { COUNTED_UNITS, LIMIT_SPANS } from "./limit-units.ts";

/**
 * A limit of at most `max` of a unit in a window. All calls with the same `scope` are counted
 * together.
 */
export interface Limit {
  /** Scope of the count, such as `key:<id>` or `account:<id>`. */
  scope: string;
  /**
   * Unit of the count. `nano_usd` is cost in billionths of a US dollar. `calls` counts calls of
   * tools.
   */
  unit:
    | "requests"
    | "concurrent"
    | "tokens"
    | "input"
    | "output"
    | "images"
    | "characters"
    | "seconds"
    | "searches"
    | "calls"
    | "nano_usd";
  /** Maximum in one window. */
  max: number | bigint;
  /** Window. `total` never resets. `open` counts only open calls and is used for `concurrent`. */
  per: "minute" | "hour" | "day" | "week" | "month" | "total" | "open";
  /**
   * Maximum number of members of the scope's group. Set only for scopes of `formatMemberScope`. The
   * call that first uses such a scope adds it to its group, in the step in which it is reserved. If
   * the group is full, the call is denied.
   */
  maxMembers?: Opt<number>;
  /** Whether the limit only counts calls and denies none. */
  countsOnly?: Opt<true>;
}

/**
 * A threshold that the usage of a limit by day, week, month, or in total exceeded. The usage counts
 * settled amounts, without reservations of open calls. `max` is the limit of the last call that
 * counted against it. Thresholds that were already exceeded when the limit was lowered are not
 * reported.
 */
export interface ThresholdReached extends Pick<Limit, "scope" | "unit" | "per"> {
  /** Threshold that was reached, in percent of `max`. */
  percent: (typeof LIMIT_THRESHOLDS)[number];
  /** Units used in the window. */
  used: bigint;
  /** Limit that was claimed last. */
  max: bigint;
  /** Time at which the limit resets, in Unix milliseconds, as in `LimitState`. */
  resetsAt: number;
}

/**
 * Records which thresholds were delivered to observers. A reached threshold is durable together
 * with the row that reached it. Its delivery is durable when `markDelivered` resolves. If a crash
 * prevents a delivery, the next owner delivers it.
 */
export interface ThresholdOutbox {
  /**
   * Returns the thresholds without a recorded delivery: from settles whose results the host did not
   * receive before it ended, and from calls that recovery settled. A store of several instances
   * returns the thresholds of this instance and of dead instances. Called once, after `open`. A
   * rejection is logged, and the thresholds are delivered after the next start.
   */
  listUndelivered(): Promise<readonly ThresholdReached[]>;
  /**
   * Records that all observers received these thresholds. It may overlap with `apply`. A repeated
   * delivery has no effect, and the delivery for a deleted window is ignored. A rejection is
   * logged, and the thresholds are delivered again after the next start.
   */
  markDelivered(crossings: readonly ThresholdReached[]): Promise<void>;
}

/** Thresholds in percent of a limit. A store checks all these thresholds. */
export const LIMIT_THRESHOLDS = [50, 80, 95, 100] as const;

/**
 * A limit with its remaining amount and the end of its window at the time when the store read it.
 */
export interface LimitState extends Limit {
  /** Units that are left in the window. */
  remaining: number | bigint;
  /**
   * Time at which the limit resets, in Unix milliseconds. For a limit that never resets, the latest
   * time of a Date (8.64e15).
   */
  resetsAt: number;
}

/**
 * Usage of a limit, for display. The sum of `used`, `reserved`, and the remaining amount is `max`,
 * unless the limit was lowered or overdrawn.
 */
export interface LimitUsage extends LimitState {
  /**
   * Usage of finished calls in this window. For a rate, the amount that has not drained yet,
   * including the reservations of open calls.
   */
  used: bigint;
  /**
   * Reservations of open calls. For a rate, it is 0, because reservations are included in `used`.
   */
  reserved: bigint;
}

const SPAN_PATTERN = LIMIT_SPANS.filter((span) => span !== "open").join("|");
const RATE_UNIT_PATTERN = COUNTED_UNITS.filter((unit) => unit !== "concurrent").join("|");

/**
 * Schema of one limit, for a plugin's `options`: a text such as usd=300/month, requests=60/minute,
 * or concurrent=5. Every text that matches the schema is a valid limit.
 */
export const LIMIT_SCHEMA = {
  type: "string",
  pattern: `^(?:usd=\\d{1,9}(?:\\.\\d{1,9})?/(?:${SPAN_PATTERN})|(?:${RATE_UNIT_PATTERN})=\\d{1,15}/(?:${SPAN_PATTERN})|concurrent=\\d{1,15})$`,
  "x-expects": "a limit such as usd=300/month, requests=60/minute, or concurrent=5",
  description: `A limit: usd=300/month, requests=60/minute, or concurrent=5. Units: usd, ${COUNTED_UNITS.join(", ")}. Spans: ${SPAN_PATTERN.replaceAll("|", ", ")}; concurrent has none`,
} as const;

const LIMIT_PATTERN = new RegExp(LIMIT_SCHEMA.pattern);

/**
 * Returns the limit that a text describes, or undefined if `LIMIT_SCHEMA` rejects the text. Dollars
 * are converted to nano-dollars exactly.
 */
export function parseLimit(text: string): Omit<Limit, "scope"> | undefined {
  if (!LIMIT_PATTERN.test(text)) return undefined;
  const [unit = "", amount = "", per = "open"] = text.split(/[=/]/);
  const [whole = "", fraction = ""] = amount.split(".");
  return unit === "usd"
    ? { unit: "nano_usd", max: BigInt(whole + fraction.padEnd(9, "0")), per: per as Limit["per"] }
    : { unit: unit as Limit["unit"], max: Number(amount), per: per as Limit["per"] };
}

/**
 * Returns the limit that a text describes. All calls with the same `scope` count against it. Throws
 * if `LIMIT_SCHEMA` rejects the text.
 */
export function parseScopedLimit(text: string, scope: string): Limit {
  const limit = parseLimit(text);
  if (limit) return { scope, ...limit };
  const message = `"${text}" is not a limit. Write ${LIMIT_SCHEMA["x-expects"]}.`;
  return fail("invalid", message, { code: "bad_input" });
}

/** Returns the text form of a limit. `parseLimit` returns the same limit for it. */
export function formatLimit({ unit, max, per }: Pick<Limit, "unit" | "max" | "per">): string {
  if (unit === "concurrent") return `concurrent=${max}`;
  if (unit !== "nano_usd") return `${unit}=${max}/${per}`;
  const digits = String(max).padStart(10, "0");
  const fraction = digits.slice(-9).replace(/0+$/, "");
  return `usd=${digits.slice(0, -9)}${fraction && `.${fraction}`}/${per}`;
}
