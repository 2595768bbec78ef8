// Money: counts and a price in, nano-dollars out. May import: model, lib. Knows no clock, no request, no provider.
//
// Each unit that was counted is charged by exactly one line. The rules:
//   reasoning      lies inside output. With a line of its own it is charged by that and taken out of output;
//                  without one it is output like the rest. Never twice.
//   cache writes   without a line for their lifetime take the nearest listed lifetime (of two, the longer).
//   pictures       images, megapixels and image_out measure the same goods: one of them that is both counted
//                  and listed covers those without a line. So do seconds and audio_in, seconds_out and audio_out.
//   pieces         a price that lists pieces and no tokens charges no tokens.
//   requests       a fee per call where the price lists one; nothing where it does not.
//   tier, bracket  see Price.
//   no line        the highest-priced line that could stand for it (stand-in.ts), and the bill is an estimate.
//                  So cost(usage) is never below the cost of a part of that usage.
//   no tier        of a tier that the price does not list, each unit at its highest rate in any tier, and the
//                  bill is an estimate.
// Rounding happens once, at the end of a sum: half to even on a bill, up on a hold.
import { createHash } from "node:crypto";
import type { Price, PriceLine } from "../model/facts.ts";
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

// Which row of a price holds at a moment: dates, hours, and what holds otherwise.
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
  // Over midnight: the morning belongs to the evening before.
  return time >= hours.from ? on(weekday) : time < hours.to && on((weekday + 6) % 7);
}

/** What else decides a price, beside the counts. */
export interface PricingContext {
  /** As upstream billed it, not as the client asked. */
  tier?: Opt<string>;
  /** Unix milliseconds of the reserve, for prices with dates or hours; without it their first row is taken. */
  at?: Opt<number>;
  quality?: Opt<string>;
  size?: Opt<string>;
  /** Whatever is not known of size and quality is the dearest there is: for holds. */
  assumeHighest?: Opt<boolean>;
  /** What multipliers ask for: region, speed… */
  pricingAttributes?: Opt<{ readonly [fact: string]: Opt<string> }>;
  round?: Opt<"half-even" | "ceil">;
}

/** One unit's share, exact, in nano-dollars. */
export interface ChargeLine {
  unit: Unit;
  count: number;
  nano: Fraction;
}

/** Zero, said on purpose. */
export const FREE: Price = {
  lines: UNITS.map((unit) => ({ unit, usd: "0", per: 1 })),
  tiers: { "*": [] },
};

/** The names that mean: no service tier. */
const DEFAULT_TIERS = new Set(["default", "standard", "standard_only", "auto", "on_demand"]);
const CACHE_WRITE_UNITS = [
  "cache_write_5m",
  "cache_write_30m",
  "cache_write_1h",
  "cache_write_12h",
] as const;
/** Units that measure the same goods. */
export const EQUIVALENT_UNITS: readonly (readonly Unit[])[] = [
  ["images", "megapixels", "image_out"],
  ["seconds", "audio_in"],
  ["seconds_out", "audio_out"],
];
/** Whichever quality and size it was: the dearest. */
const ANY_VARIANT = { assumeHighest: true, size: undefined, quality: undefined } as const;
/** Multipliers leave them alone. */
const PIECE_UNIT_SET = new Set<Unit>(PIECE_UNITS);
const ONE: Fraction = { n: 1n, d: 1n };
/** Millionths of a unit times pico-dollars a unit, in one nano-dollar. */
const UNITS_PER_NANO = 1_000_000_000n;

export interface Bill {
  readonly nano: bigint;
  readonly lines: readonly ChargeLine[];
  /** Units that were counted and have no line: they are charged by a stand-in. */
  readonly unpricedUnits: readonly Unit[];
  /** A service tier that the price does not list. */
  readonly unknownTier: string | undefined;
}

/** Whether each count was charged at a rate that the price lists for it. */
export const isExact = ({ unpricedUnits, unknownTier }: Bill): boolean =>
  unpricedUnits.length === 0 && unknownTier === undefined;

/** Nano-dollars, stand-ins included; null where no price holds at that moment. */
export const calculateCost = (usage: Usage, price: Price, c: PricingContext = {}): bigint | null =>
  calculateBill(usage, price, c)?.nano ?? null;

/** Null where no price holds at that moment, or a count is not a number. */
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
    // Most units are not counted: looking up a rate costs more than all the rest.
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
  // Nothing stood in for its tokens: such a price is one of pieces alone.
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

/** Of these units the one that costs most, this much input given: what a worst case is made of. */
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

type RateLookup = (unit: Unit, first?: boolean) => Fraction | undefined;

interface TierRates {
  readonly rate: RateLookup;
  /** A service tier that the price does not list: its rates are the highest of all tiers, the plain one included. */
  readonly unknownTier: string | undefined;
}

/** Pico-dollars a unit, under these circumstances. */
function createRates(price: Price, usage: Usage, c: PricingContext): TierRates {
  const named = c.tier !== undefined && !DEFAULT_TIERS.has(c.tier) ? c.tier : undefined;
  // The name is a client's word.
  const tiers = price.tiers ?? {};
  const listed = named && tiers[Object.hasOwn(tiers, named) ? named : "*"];
  const facts = { ...c.pricingAttributes, tier: named };
  const factors = (price.multipliers ?? []).filter(({ when }) =>
    Object.entries(when).every(([fact, value]) => facts[fact as "tier"] === value),
  );
  const unknown =
    named && !listed && !factors.some(({ when }) => when["tier"] !== undefined) ? named : undefined;
  const possible = unknown ? [undefined, ...Object.values(tiers)] : [listed || undefined];
  const factor = factors.reduce(
    (product, { by }) => multiplyFractions(product, { n: parseDecimal(by, 9), d: 1_000_000_000n }),
    ONE,
  );
  const input = inputTokens(usage);
  let bracket: { input: number; lines: readonly PriceLine[] } = { input: -1, lines: [] };
  for (const over of price.over ?? [])
    if (input > over.input && over.input > bracket.input) bracket = over;
  const rate: RateLookup = (unit, first = false) => {
    const plain = selectRate(price.lines, unit, first, c);
    const raised = selectRate(bracket.lines, unit, first, c);
    let most: Fraction | undefined;
    for (const tier of possible) {
      const tiered = tier ? selectRate(tier, unit, first, c) : undefined;
      const rate =
        tiered && raised ? applyBracket(tiered, plain, raised) : (tiered ?? raised ?? plain);
      if (rate && (!most || compareFractions(rate, most) > 0)) most = rate;
    }
    return most && !PIECE_UNIT_SET.has(unit) ? multiplyFractions(most, factor) : most;
  };
  return { rate, unknownTier: unknown };
}

/** The tier's rate, raised as the bracket raises the plain one; where that says nothing, the dearer of the two. */
function applyBracket(tiered: Fraction, plain: Fraction | undefined, raised: Fraction): Fraction {
  if (plain && plain.n > 0n) return { n: tiered.n * raised.n, d: plain.n };
  return compareFractions(tiered, raised) > 0 ? tiered : raised;
}

/** The line whose variant fits best: every field it names must match, and more fields are better. */
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

/** Left to upstream, it may turn out to be any. */
const couldMatch = (listed: Opt<string>, asked: Opt<string>): boolean =>
  listed === undefined || asked === undefined || asked === "auto" || listed === asked;

const picoCache = new WeakMap<PriceLine, bigint>();

/** Pico-dollars a unit: "0.0025" a million is 2,500 of them, and not a whole number of nano-dollars. */
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

/** Whether another unit that measures the same goods is counted and listed. */
function isCoveredByEquivalent(unit: Unit, usage: Usage, rate: RateLookup): boolean {
  const alike = EQUIVALENT_UNITS.find((units) => units.includes(unit)) ?? [];
  return alike.some((u) => u !== unit && (usage[u] ?? 0) > 0 && (rate(u) ?? rate(u, true)));
}

const hashCache = new WeakMap<Price, string>();

/** The content of a price row: equal prices, equal hashes, whatever the order of their fields. */
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
