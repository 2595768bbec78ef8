// Computes cost in nano-dollars from counts and a price. May import model and lib. Does not depend
// on a clock, a request, or a provider.
//
// Each counted unit is charged by exactly one line. The rules:
//   reasoning      is included in output. With a line of its own, it is charged by that line and
//                  deducted from output. Without one, it is charged as output. It is never charged
//                  twice.
//   cache writes   without a line for their lifetime use the nearest listed lifetime (of two, the
//                  longer).
//   images         images, megapixels, and image_out measure the same goods. One of them that is
//                  both counted and listed covers the others that have no line. The same applies to
//                  seconds and audio_in, and to seconds_out and audio_out.
//   pieces         a price that lists pieces and no tokens charges no tokens.
//   requests       a fee per call if the price lists one.
//   tier, bracket  see `Price`.
//   no line        the highest rate that could apply (`fallback-rates.ts`) is charged, and the bill
//                  is an estimate. The cost of a usage is thus never below the cost of a part of it.
//   unknown tier   if the price does not list the tier, each unit is charged at its highest rate in
//                  any tier, and the bill is an estimate.
// Rounding happens once, at the end of a sum: half to even for a bill, up for a reservation.
import { createHash } from "node:crypto";
import type { Price, PriceBracket, PriceLine } from "../model/facts.ts";
import { inputTokens, PIECE_UNITS, UNITS, type Unit, type Usage } from "../model/usage.ts";
import type { Opt } from "../model/values.ts";
import {
  roundUp,
  compareFractions,
  roundHalfEven,
  toMillionths,
  parseDecimal,
  addFractions,
  multiplyFractions,
  type Fraction,
} from "./decimal.ts";
import { fallbackRate } from "./fallback-rates.ts";
import type { OperationSpec } from "../model/operations/operation-spec.ts";

// Returns the row of a price that applies at a given time: by date, by hour, or the fallback row.
function activePrice(price: Price, at: Opt<number>): Price | undefined {
  if (at === undefined) return price;
  let row: Price | undefined = price;
  while (row && !isActive(row, at)) row = row.otherwise;
  return row;
}
function isActive({ from, until, hours }: Price, at: number): boolean {
  if (from === undefined && until === undefined && !hours) return true;
  const moment = new Date(at).toISOString();
  const day = moment.slice(0, 10);
  if ((from !== undefined && day < from) || (until !== undefined && day > until)) return false;
  if (!hours) return true;
  const time = moment.slice(11, 16);
  const weekday = new Date(at).getUTCDay();
  const on = (d: number): boolean => !hours.days || hours.days.includes(d);
  if (hours.from <= hours.to) return on(weekday) && time >= hours.from && time < hours.to;
  // For hours that span midnight, the morning belongs to the previous day.
  return time >= hours.from ? on(weekday) : time < hours.to && on((weekday + 6) % 7);
}

/** Inputs to a price other than the counts. */
export interface PricingContext {
  /** Service tier as upstream billed it, not as the client requested it. */
  tier?: Opt<string>;
  /**
   * Time of the reservation in Unix milliseconds, for prices with dates or hours. If unset, the
   * first row applies.
   */
  at?: Opt<number>;
  quality?: Opt<string>;
  size?: Opt<string>;
  /**
   * Whether to assume the most expensive size and quality if they are unknown. Used for
   * reservations.
   */
  assumeHighest?: Opt<boolean>;
  /** Attributes that multipliers match, such as region and speed. */
  pricingAttributes?: Opt<{ readonly [fact: string]: Opt<string> }>;
  round?: Opt<"half-even" | "ceil">;
}

/** The exact share of one unit, in nano-dollars. */
export interface ChargeLine {
  unit: Unit;
  count: number;
  nano: Fraction;
}

/** An explicit price of zero. */
export const FREE: Price = {
  lines: UNITS.map((unit) => ({ unit, usd: "0", per: 1 })),
  tiers: { "*": [] },
};

/** Names that mean no particular service tier. */
const DEFAULT_TIERS = new Set(["default", "standard", "standard_only", "auto", "on_demand"]);
const CACHE_WRITE_UNITS = [
  "cache_write_5m",
  "cache_write_30m",
  "cache_write_1h",
  "cache_write_12h",
] as const;
/** Groups of units that measure the same goods. */
export const EQUIVALENT_UNITS: readonly (readonly Unit[])[] = [
  ["images", "megapixels", "image_out"],
  ["seconds", "audio_in"],
  ["seconds_out", "audio_out"],
];
/** Selects the most expensive line of any quality and size. */
const ANY_VARIANT = { assumeHighest: true, size: undefined, quality: undefined } as const;
/** Multipliers do not apply to these units. */
const PIECE_UNIT_SET = new Set<Unit>(PIECE_UNITS);
const ONE: Fraction = { n: 1n, d: 1n };
/** Divisor from millionths of a unit times pico-dollars per unit to nano-dollars. */
const UNITS_PER_NANO = 1_000_000_000n;

export interface Bill {
  readonly nano: bigint;
  readonly lines: readonly ChargeLine[];
  /** Counted units without a price line. They are charged at a fallback rate. */
  readonly unpricedUnits: readonly Unit[];
  /** Service tier that the price does not list. */
  readonly unknownTier: string | undefined;
}

/** Whether every count was charged at a rate that the price lists for it. */
export const isExact = ({ unpricedUnits, unknownTier }: Bill): boolean =>
  unpricedUnits.length === 0 && unknownTier === undefined;

/**
 * Returns the cost in nano-dollars, including fallback rates. `null` if no price applies at that
 * time.
 */
export const calculateCost = (usage: Usage, price: Price, c: PricingContext = {}): bigint | null =>
  calculateBill(usage, price, c)?.nano ?? null;

/**
 * Returns the bill. `null` if no price applies at that time, or a count is not a finite number of
 * at least 0.
 */
export function calculateBill(usage: Usage, price: Price, c: PricingContext = {}): Bill | null {
  const row = activePrice(price, c.at);
  if (!row) return null;
  const { rate, unknownTier } = createRates(row, usage, c);
  const lines: ChargeLine[] = [];
  const add = (unit: Unit, count: number, at: Fraction | undefined): void => {
    if (count > 0 && at)
      lines.push({
        unit,
        count,
        nano: multiplyFractions(at, { n: toMillionths(count), d: UNITS_PER_NANO }),
      });
  };
  let lacks: Unit[] = [];
  let loose: RateLookup | undefined;
  for (const unit of UNITS) {
    let count = usage[unit] ?? 0;
    if (!(count >= 0 && count < Infinity)) return null;
    // Most units have a count of 0. Looking up a rate costs more than all other steps in this loop.
    if (count === 0 && unit !== "requests") continue;
    const at = rate(unit);
    if (unit === "requests") {
      add(unit, Math.max(1, count), at);
      continue;
    }
    if (unit === "reasoning" && !at) continue;
    if (unit === "output" && rate("reasoning")) count = Math.max(0, count - (usage.reasoning ?? 0));
    const first = rate(unit, true);
    if (first && count > 0) {
      const firsts = Math.min(count, unit === "megapixels" ? (usage.images ?? 1) : 1);
      add(unit, firsts, first);
      count -= firsts;
    }
    if (count <= 0) continue;
    const listed = at ?? nearestCacheWriteRate(unit, rate);
    if (listed) add(unit, count, listed);
    else if (!isCoveredByEquivalent(unit, usage, rate)) {
      loose ??= createRates(row, usage, { ...c, ...ANY_VARIANT }).rate;
      lacks.push(unit);
      add(unit, count, loose(unit) ?? loose(unit, true) ?? fallbackRate(unit, loose));
    }
  }
  // This price has lines only for pieces, so token counts without a line do not make the bill an
  // estimate.
  if (lines.length > 0 && row.lines.every((line) => PIECE_UNIT_SET.has(line.unit)))
    lacks = lacks.filter((unit) => PIECE_UNIT_SET.has(unit));
  const sum = lines.reduce((sum, { nano }) => addFractions(sum, nano), {
    n: 0n,
    d: UNITS_PER_NANO,
  });
  return {
    nano: c.round === "ceil" ? roundUp(sum) : roundHalfEven(sum),
    lines,
    unpricedUnits: lacks,
    unknownTier,
  };
}

/** Returns the unit that costs most at this input size, for worst-case estimates. */
export function mostExpensiveUnit(
  price: Price,
  units: readonly Unit[],
  input: number,
  c: PricingContext = {},
): Unit | undefined {
  const row = activePrice(price, c.at);
  const rate = row && createRates(row, { input }, c).rate;
  let most: Fraction | undefined;
  let found: Unit | undefined;
  for (const unit of units) {
    const at = rate?.(unit);
    if (at && (!most || compareFractions(at, most) > 0)) [most, found] = [at, unit];
  }
  return found;
}

const NO_LINES: readonly PriceLine[] = [];
const NO_BRACKET: PriceBracket = { input: -1, lines: NO_LINES };

/** Lines of a service tier, and those of the bracket that applies. */
interface TierLines {
  readonly lines: readonly PriceLine[];
  readonly raised: readonly PriceLine[];
}

type RateLookup = (unit: Unit, first?: boolean) => Fraction | undefined;

interface TierRates {
  readonly rate: RateLookup;
  /**
   * Service tier that the price does not list. The highest rates of all tiers apply, including
   * those without a tier.
   */
  readonly unknownTier: string | undefined;
}

/** Creates a lookup of rates in pico-dollars per unit for this usage and context. */
function createRates(price: Price, usage: Usage, c: PricingContext): TierRates {
  const named = c.tier !== undefined && !DEFAULT_TIERS.has(c.tier) ? c.tier : undefined;
  // The name comes from a client, so only own members are read.
  const tiers = price.tiers ?? {};
  const input = inputTokens(usage);
  let bracket: PriceBracket = NO_BRACKET;
  for (const over of price.over ?? [])
    if (input > over.input && over.input > bracket.input) bracket = over;
  const raisedTiers = bracket.tiers ?? {};
  const linesOf = (tier: string): TierLines | undefined => {
    const [lines, raised] = [tiers, raisedTiers].map((of) =>
      Object.hasOwn(of, tier) ? of[tier] : undefined,
    );
    return lines || raised ? { lines: lines ?? NO_LINES, raised: raised ?? NO_LINES } : undefined;
  };
  const listed = named === undefined ? undefined : (linesOf(named) ?? linesOf("*"));
  const facts = { ...c.pricingAttributes, tier: named };
  const factors = (price.multipliers ?? []).filter(({ when }) =>
    Object.entries(when).every(([fact, value]) => facts[fact as "tier"] === value),
  );
  const unknown =
    named && !listed && !factors.some(({ when }) => when["tier"] !== undefined) ? named : undefined;
  const possible = unknown
    ? [undefined, ...[tiers, raisedTiers].flatMap((of) => Object.keys(of)).map(linesOf)]
    : [listed];
  const factor = factors.reduce(
    (product, { by }) => multiplyFractions(product, { n: parseDecimal(by, 9), d: 1_000_000_000n }),
    ONE,
  );
  const rate: RateLookup = (unit, first = false) => {
    const plain = selectRate(price.lines, unit, first, c);
    const raised = selectRate(bracket.lines, unit, first, c);
    let most: Fraction | undefined;
    for (const tier of possible) {
      const exact = tier && selectRate(tier.raised, unit, first, c);
      const tiered = tier && selectRate(tier.lines, unit, first, c);
      const rate =
        exact ??
        (tiered && raised ? applyBracket(tiered, plain, raised) : (tiered ?? raised ?? plain));
      if (rate && (!most || compareFractions(rate, most) > 0)) most = rate;
    }
    return most && !PIECE_UNIT_SET.has(unit) ? multiplyFractions(most, factor) : most;
  };
  return { rate, unknownTier: unknown };
}

/**
 * Returns the tier's rate, increased in the same proportion as the bracket increases the rate
 * without a tier. If there is no rate without a tier, returns the higher of the tier's and the
 * bracket's rate.
 */
function applyBracket(tiered: Fraction, plain: Fraction | undefined, raised: Fraction): Fraction {
  if (plain && plain.n > 0n) return { n: tiered.n * raised.n, d: plain.n };
  return compareFractions(tiered, raised) > 0 ? tiered : raised;
}

/**
 * Returns the rate of the line whose variant matches best. Every field of the variant must match,
 * and more matching fields are better.
 */
function selectRate(
  lines: readonly PriceLine[],
  unit: Unit,
  first: boolean,
  c: PricingContext,
): Fraction | undefined {
  let best: PriceLine | undefined;
  let most = -1;
  let worst = 0n;
  for (const line of lines) {
    const v = line.variant;
    if (line.unit !== unit || (v?.first ?? false) !== first) continue;
    if (c.assumeHighest) {
      if (
        couldMatch(v?.quality, c.quality) &&
        couldMatch(v?.size, c.size) &&
        picoDollarsPerUnit(line) >= worst
      )
        [best, worst] = [line, picoDollarsPerUnit(line)];
      continue;
    }
    if (v?.quality !== undefined && v.quality !== c.quality) continue;
    if (v?.size !== undefined && v.size !== c.size) continue;
    const fields = Number(v?.quality !== undefined) + Number(v?.size !== undefined);
    if (fields > most) [best, most] = [line, fields];
  }
  return best && { n: picoDollarsPerUnit(best), d: 1n };
}

/** A value that is left to upstream can match any variant. */
const couldMatch = (listed: Opt<string>, requested: Opt<string>): boolean =>
  listed === undefined || requested === undefined || requested === "auto" || listed === requested;

const picoCache = new WeakMap<PriceLine, bigint>();

/**
 * Pico-dollars per unit. A price of "0.0025" per million is 2,500 pico-dollars, which is not an
 * integer number of nano-dollars.
 */
export function picoDollarsPerUnit(line: PriceLine): bigint {
  let value = picoCache.get(line);
  if (value === undefined)
    picoCache.set(line, (value = parseDecimal(line.usd, line.per === 1 ? 12 : 6)));
  return value;
}

function nearestCacheWriteRate(unit: Unit, rate: RateLookup): Fraction | undefined {
  const at = CACHE_WRITE_UNITS.indexOf(unit as (typeof CACHE_WRITE_UNITS)[number]);
  if (at < 0) return undefined;
  for (let step = 1; step < CACHE_WRITE_UNITS.length; step++)
    for (const other of [CACHE_WRITE_UNITS[at + step], CACHE_WRITE_UNITS[at - step]]) {
      const found = other && rate(other);
      if (found) return found;
    }
  return undefined;
}

/** Whether another unit for the same content is counted and has a price. */
function isCoveredByEquivalent(unit: Unit, usage: Usage, rate: RateLookup): boolean {
  const alike = EQUIVALENT_UNITS.find((units) => units.includes(unit)) ?? [];
  return alike.some((u) => u !== unit && (usage[u] ?? 0) > 0 && (rate(u) ?? rate(u, true)));
}

const hashCache = new WeakMap<Price, string>();

/**
 * Returns a hash of a price's content. Equal prices have equal hashes, regardless of field order.
 */
export function priceHash(price: Price): string {
  let hash = hashCache.get(price);
  if (hash === undefined) {
    const text = JSON.stringify(price, (_key, value: unknown) =>
      value && typeof value === "object" && !Array.isArray(value)
        ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
        : value,
    );
    hashCache.set(price, (hash = createHash("sha256").update(text).digest("hex").slice(0, 32)));
  }
  return hash;
}

// Prices a typical request, to compare models, with the lines of its bill.

interface PricedExample {
  /** Description for display, such as "10,000 tokens in, 1,000 out". */
  readonly description: string;
  readonly usage: Usage;
  /** Cost in nano-dollars. `null` if the price is unknown. */
  readonly nano: bigint | null;
  readonly lines: readonly { readonly unit: Unit; readonly count: number; readonly nano: bigint }[];
}

/** Computes the example. `at`: the time at which the price applies, in Unix milliseconds. */
export function createPricedExample(
  operationSpec: OperationSpec,
  price: Price | undefined,
  at: number,
): PricedExample {
  const [first, ...others] = operationSpec.priceExamples;
  for (const { description, usage } of price ? [first, ...others] : []) {
    const bill = calculateBill(usage, price!, { at });
    if (!bill || !isExact(bill)) continue;
    const lines = bill.lines.map(({ unit, count, nano }) => ({
      unit,
      count,
      nano: roundHalfEven(nano),
    }));
    return { description, usage, nano: bill.nano, lines };
  }
  return { ...first, nano: null, lines: [] };
}
