// What is counted against a key, an account or whatever else a plugin counts; and the form in which an operator writes it:
// { unit: usd, max: 5, per: month }. One form for keys, for accounts, and for the options of any plugin that takes limits.
import { COUNTED, LIMIT_SPANS } from "./limit-words.ts";
import type { Problem } from "./problem.ts";
import type { Infer } from "./schema.ts";

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
export interface LimitCrossing extends Pick<Limit, "scope" | "unit" | "per"> {
  /** Threshold that was reached, in percent of `max`. */
  percent: (typeof CROSSINGS)[number];
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
export interface KeptCrossings {
  /**
   * Those of which nothing says that they were told: by settles whose verdict the host did not live to hear, and by calls that recovery has
   * presumed. Of a store of several instances: this one's, and those of instances that are dead. Asked once, after `open`. A rejection is logged, and they are told after the next start.
   */
  untold(): Promise<readonly LimitCrossing[]>;
  /**
   * All observers have been told of these. May overlap with `apply`. One that is told again changes nothing, and one of a window
   * that is forgotten is passed over. A rejection is logged: it is told once more after the next start.
   */
  told(crossings: readonly LimitCrossing[]): Promise<void>;
}

/** In per cent of a limit. A store looks at each. */
export const CROSSINGS = [50, 80, 95, 100] as const;

/** A limit as it stood when the store looked: what is left, and when the window ends. */
export interface LimitState extends Limit {
  /** Units that are left in the window. */
  left: number | bigint;
  /** Unix milliseconds; for what never resets, the last moment that a Date can say (8.64e15). */
  resetsAt: number;
}

/** What a limit has counted, for people: `used` and `held` and what is left come to `max`, but for a limit that was lowered or overdrawn. */
export interface LimitCount extends LimitState {
  /** What calls that are over came to in this window. Of a rate, what has not drained yet, with what open calls hold. */
  used: bigint;
  /** What open calls have set aside. Of a rate nothing: it is in `used`. */
  held: bigint;
}

/** The schema of one limit, for a plugin's `options`. What it cannot say, `limitFlaw` says. */
export const LIMIT = {
  type: "object",
  additionalProperties: false,
  required: ["unit", "max", "per"],
  properties: {
    unit: {
      enum: [...COUNTED, "usd", "nano_usd"],
      description: "What is counted; usd is a budget in dollars",
    },
    max: {
      type: ["number", "string"],
      minimum: 0,
      description: "How much of it: a whole number; of usd a decimal, as in 12.50",
    },
    per: {
      enum: LIMIT_SPANS,
      description: "In which time; open is for concurrent",
    },
  },
} as const;

/** A limit that `LIMIT` has let through. */
export type WrittenLimit = Infer<typeof LIMIT>;

/** What is wrong with it, for a plugin's `check`: `path` begins at the limit itself. Undefined: nothing. Never throws. */
export function limitFlaw({ unit, max, per }: WrittenLimit): Problem | undefined {
  if (amountOf(unit, max) === undefined)
    return {
      path: "/max",
      message: unit === "usd" ? "is no amount of dollars" : "is not a whole number",
      ...(unit === "usd" && { hint: "write it as 12.50, with at most nine decimals" }),
    };
  if ((unit === "concurrent") !== (per === "open"))
    return { path: "/per", message: "open goes with concurrent, and concurrent with nothing else" };
  return undefined;
}

/** As the store counts it, for all that share `scope`. Of one that has a flaw it lets nothing through. Never throws. */
export function limitOf({ unit, max, per }: WrittenLimit, scope: string): Limit {
  const amount = amountOf(unit, max) ?? 0n;
  return unit === "usd"
    ? { scope, unit: "nano_usd", max: amount, per }
    : { scope, unit, max: Number(amount), per };
}

/** Dollars as nano-dollars, to the last digit that was written; undefined where it is none. */
function amountOf(unit: WrittenLimit["unit"], max: WrittenLimit["max"]): bigint | undefined {
  const [, whole, fraction = ""] = /^(\d{1,9})(?:\.(\d{1,9}))?$/.exec(String(max)) ?? [];
  if (unit === "usd")
    return whole === undefined ? undefined : BigInt(whole + fraction.padEnd(9, "0"));
  return Number.isSafeInteger(Number(max)) && /^\d+$/.test(String(max)) ? BigInt(max) : undefined;
}
