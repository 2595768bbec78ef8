// Limits: the type that stores count by, and the text that people and programs write: usd=5/month. The text has one schema, one
// parser and one printer, for gateway.yaml, commands, the admin API and the options of any plugin that takes limits.
import { fail } from "../../model/error.ts";
import { COUNTED_UNITS, LIMIT_SPANS } from "./limit-units.ts";

/** At most `max` of a unit in a window, counted together for all that share `scope`. */
export interface Limit {
  /** What shares the count, such as `key:<id>` or `account:<id>`. */
  scope: string;
  /** What is counted. `nano_usd` is cost in billionths of a US dollar. */
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
    | "nano_usd";
  /** Maximum in one window. */
  max: number | bigint;
  /** Window. `total` never resets; `open` counts only open calls and belongs to `concurrent`. */
  per: "minute" | "hour" | "day" | "week" | "month" | "total" | "open";
}

/**
 * What a limit by day, week, month or in total has counted went over this much of it: what was used, without what open calls
 * hold. `max` is the one that was claimed last. What had been over already when the limit was lowered is not told.
 */
export interface ThresholdReached extends Pick<Limit, "scope" | "unit" | "per"> {
  /** Threshold that was reached, in percent of `max`. */
  percent: (typeof LIMIT_THRESHOLDS)[number];
  /** Units used in the window. */
  used: bigint;
  /** Limit that was claimed last. */
  max: bigint;
  /** Unix milliseconds, as of a LimitState. */
  resetsAt: number;
}

/**
 * Which crossings were told. That a limit was crossed is durable with the row that did it; that it was told, when `told` resolves. So a
 * crossing that a crash has kept from being told is told by the next owner.
 */
export interface ThresholdOutbox {
  /**
   * Those of which nothing says that they were told: by settles whose verdict the host did not live to hear, and by calls that recovery has
   * recovered. Of a store of several instances: this one's, and those of instances that are dead. Asked once, after `open`. A rejection is logged, and they are told after the next start.
   */
  listUndelivered(): Promise<readonly ThresholdReached[]>;
  /**
   * All observers have been told of these. May overlap with `apply`. One that is told again changes nothing, and one of a window
   * that is forgotten is passed over. A rejection is logged: it is told once more after the next start.
   */
  markDelivered(crossings: readonly ThresholdReached[]): Promise<void>;
}

/** In per cent of a limit. A store looks at each. */
export const LIMIT_THRESHOLDS = [50, 80, 95, 100] as const;

/** A limit as it stood when the store looked: what is left, and when the window ends. */
export interface LimitState extends Limit {
  /** Units that are left in the window. */
  remaining: number | bigint;
  /** Unix milliseconds; for what never resets, the last moment that a Date can say (8.64e15). */
  resetsAt: number;
}

/** What a limit has counted, for people: `used` and `held` and what is left come to `max`, but for a limit that was lowered or overdrawn. */
export interface LimitUsage extends LimitState {
  /** What calls that are over came to in this window. Of a rate, what has not drained yet, with what open calls hold. */
  used: bigint;
  /** What open calls have set aside. Of a rate nothing: it is in `used`. */
  reserved: bigint;
}

const SPAN_PATTERN = LIMIT_SPANS.filter((span) => span !== "open").join("|");
const RATE_UNIT_PATTERN = COUNTED_UNITS.filter((unit) => unit !== "concurrent").join("|");

/**
 * The schema of one limit, for a plugin's `options`: a text such as usd=300/month, requests=60/minute or concurrent=5. Each text
 * that it accepts is a limit.
 */
export const LIMIT_SCHEMA = {
  type: "string",
  pattern: `^(?:usd=\\d{1,9}(?:\\.\\d{1,9})?/(?:${SPAN_PATTERN})|(?:${RATE_UNIT_PATTERN})=\\d{1,15}/(?:${SPAN_PATTERN})|concurrent=\\d{1,15})$`,
  "x-expects": "a limit such as usd=300/month, requests=60/minute or concurrent=5",
  description: `A limit: usd=300/month, requests=60/minute or concurrent=5. Units: usd, ${COUNTED_UNITS.join(", ")}. Spans: ${SPAN_PATTERN.replaceAll("|", ", ")}; concurrent has none`,
} as const;

const LIMIT_PATTERN = new RegExp(LIMIT_SCHEMA.pattern);

/** Returns the limit that a text describes, or undefined for a text that `LIMIT` rejects. Dollars become nano-dollars, exactly. */
export function parseLimit(text: string): Omit<Limit, "scope"> | undefined {
  if (!LIMIT_PATTERN.test(text)) return undefined;
  const [unit = "", amount = "", per = "open"] = text.split(/[=/]/);
  const [whole = "", fraction = ""] = amount.split(".");
  return unit === "usd"
    ? { unit: "nano_usd", max: BigInt(whole + fraction.padEnd(9, "0")), per: per as Limit["per"] }
    : { unit: unit as Limit["unit"], max: Number(amount), per: per as Limit["per"] };
}

/** Returns the limit that a text describes, counted for all that share `scope`. Throws for a text that `LIMIT` rejects. */
export function parseScopedLimit(text: string, scope: string): Limit {
  const limit = parseLimit(text);
  if (limit) return { scope, ...limit };
  const message = `"${text}" is not a limit. Write ${LIMIT_SCHEMA["x-expects"]}.`;
  return fail("invalid", message, { code: "bad_input" });
}

/** Returns the text of a limit, from which `parseLimit` reads the same limit. */
export function formatLimit({ unit, max, per }: Pick<Limit, "unit" | "max" | "per">): string {
  if (unit === "concurrent") return `concurrent=${max}`;
  if (unit !== "nano_usd") return `${unit}=${max}/${per}`;
  const digits = String(max).padStart(10, "0");
  const fraction = digits.slice(-9).replace(/0+$/, "");
  return `usd=${digits.slice(0, -9)}${fraction && `.${fraction}`}/${per}`;
}
