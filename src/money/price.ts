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
  ceiling,
  compare,
  halfEven,
  millionths,
  parseDecimal,
  plus,
  times,
  type Fraction,
} from "./decimal.ts";
import { holding } from "./season.ts";
import { standIn } from "./stand-in.ts";

/** What else decides a price, beside the counts. */
export interface Circumstances {
  /** As upstream billed it, not as the client asked. */
  tier?: Opt<string>;
  /** Unix milliseconds of the reserve, for prices with dates or hours; without it their first row is taken. */
  at?: Opt<number>;
  quality?: Opt<string>;
  size?: Opt<string>;
  /** Whatever is not known of size and quality is the dearest there is: for holds. */
  dearest?: Opt<boolean>;
  /** What multipliers ask for: region, speed… */
  facts?: Opt<{ readonly [fact: string]: Opt<string> }>;
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
const PLAIN = new Set(["default", "standard", "standard_only", "auto", "on_demand"]);
const LIFETIMES = [
  "cache_write_5m",
  "cache_write_30m",
  "cache_write_1h",
  "cache_write_12h",
] as const;
/** Units that measure the same goods. */
export const SAME_GOODS: readonly (readonly Unit[])[] = [
  ["images", "megapixels", "image_out"],
  ["seconds", "audio_in"],
  ["seconds_out", "audio_out"],
];
/** Whichever quality and size it was: the dearest. */
const ANY = { dearest: true, size: undefined, quality: undefined } as const;
/** Multipliers leave them alone. */
const PIECES = new Set<Unit>(PIECE_UNITS);
const ONE: Fraction = { n: 1n, d: 1n };
/** Millionths of a unit times pico-dollars a unit, in one nano-dollar. */
const PER_NANO = 1_000_000_000n;

export interface Bill {
  readonly nano: bigint;
  readonly lines: readonly ChargeLine[];
  /** Units that were counted and have no line: they are charged by a stand-in. */
  readonly lacks: readonly Unit[];
  /** A service tier that the price does not list. */
  readonly tier: string | undefined;
}

/** Whether each count was charged at a rate that the price lists for it. */
export const isExact = ({ lacks, tier }: Bill): boolean => lacks.length === 0 && tier === undefined;

/** Nano-dollars, stand-ins included; null where no price holds at that moment. */
export const cost = (usage: Usage, price: Price, c: Circumstances = {}): bigint | null =>
  billOf(usage, price, c)?.nano ?? null;

/** Null where no price holds at that moment, or a count is not a number. */
export function billOf(usage: Usage, price: Price, c: Circumstances = {}): Bill | null {
  const row = holding(price, c.at);
  if (!row) return null;
  const { rate, tier } = rates(row, usage, c);
  const lines: ChargeLine[] = [];
  const add = (unit: Unit, count: number, at: Fraction | undefined): void => {
    if (count > 0 && at)
      lines.push({ unit, count, nano: times(at, { n: millionths(count), d: PER_NANO }) });
  };
  let lacks: Unit[] = [];
  let loose: Rate | undefined;
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
    const listed = at ?? lifetime(unit, rate);
    if (listed) add(unit, count, listed);
    else if (!covered(unit, usage, rate)) {
      loose ??= rates(row, usage, { ...c, ...ANY }).rate;
      lacks.push(unit);
      add(unit, count, loose(unit) ?? loose(unit, true) ?? standIn(unit, loose));
    }
  }
  // Nothing stood in for its tokens: such a price is one of pieces alone.
  if (lines.length > 0 && row.lines.every((line) => PIECES.has(line.unit)))
    lacks = lacks.filter((unit) => PIECES.has(unit));
  const sum = lines.reduce((sum, { nano }) => plus(sum, nano), { n: 0n, d: PER_NANO });
  return { nano: c.round === "ceil" ? ceiling(sum) : halfEven(sum), lines, lacks, tier };
}

/** Of these units the one that costs most, this much input given: what a worst case is made of. */
export function dearest(
  price: Price,
  units: readonly Unit[],
  input: number,
  c: Circumstances = {},
): Unit | undefined {
  const row = holding(price, c.at);
  const rate = row && rates(row, { input }, c).rate;
  let most: Fraction | undefined;
  let found: Unit | undefined;
  for (const unit of units) {
    const at = rate?.(unit);
    if (at && (!most || compare(at, most) > 0)) [most, found] = [at, unit];
  }
  return found;
}

type Rate = (unit: Unit, first?: boolean) => Fraction | undefined;

interface Rates {
  readonly rate: Rate;
  /** A service tier that the price does not list: its rates are the highest of all tiers, the plain one included. */
  readonly tier: string | undefined;
}

/** Pico-dollars a unit, under these circumstances. */
function rates(price: Price, usage: Usage, c: Circumstances): Rates {
  const named = c.tier !== undefined && !PLAIN.has(c.tier) ? c.tier : undefined;
  // The name is a client's word.
  const tiers = price.tiers ?? {};
  const listed = named && tiers[Object.hasOwn(tiers, named) ? named : "*"];
  const facts = { ...c.facts, tier: named };
  const factors = (price.multipliers ?? []).filter(({ when }) =>
    Object.entries(when).every(([fact, value]) => facts[fact as "tier"] === value),
  );
  const unknown =
    named && !listed && !factors.some(({ when }) => when["tier"] !== undefined) ? named : undefined;
  const possible = unknown ? [undefined, ...Object.values(tiers)] : [listed || undefined];
  const factor = factors.reduce(
    (product, { by }) => times(product, { n: parseDecimal(by, 9), d: 1_000_000_000n }),
    ONE,
  );
  const input = inputTokens(usage);
  let bracket: { input: number; lines: readonly PriceLine[] } = { input: -1, lines: [] };
  for (const over of price.over ?? [])
    if (input > over.input && over.input > bracket.input) bracket = over;
  const rate: Rate = (unit, first = false) => {
    const plain = pick(price.lines, unit, first, c);
    const raised = pick(bracket.lines, unit, first, c);
    let most: Fraction | undefined;
    for (const tier of possible) {
      const tiered = tier ? pick(tier, unit, first, c) : undefined;
      const rate = tiered && raised ? raise(tiered, plain, raised) : (tiered ?? raised ?? plain);
      if (rate && (!most || compare(rate, most) > 0)) most = rate;
    }
    return most && !PIECES.has(unit) ? times(most, factor) : most;
  };
  return { rate, tier: unknown };
}

/** The tier's rate, raised as the bracket raises the plain one; where that says nothing, the dearer of the two. */
function raise(tiered: Fraction, plain: Fraction | undefined, raised: Fraction): Fraction {
  if (plain && plain.n > 0n) return { n: tiered.n * raised.n, d: plain.n };
  return compare(tiered, raised) > 0 ? tiered : raised;
}

/** The line whose variant fits best: every field it names must match, and more fields are better. */
function pick(
  lines: readonly PriceLine[],
  unit: Unit,
  first: boolean,
  c: Circumstances,
): Fraction | undefined {
  let best: PriceLine | undefined;
  let most = -1;
  let worst = 0n;
  for (const line of lines) {
    const v = line.variant;
    if (line.unit !== unit || (v?.first ?? false) !== first) continue;
    if (c.dearest) {
      if (could(v?.quality, c.quality) && could(v?.size, c.size) && pico(line) >= worst)
        [best, worst] = [line, pico(line)];
      continue;
    }
    if (v?.quality !== undefined && v.quality !== c.quality) continue;
    if (v?.size !== undefined && v.size !== c.size) continue;
    const fields = Number(v?.quality !== undefined) + Number(v?.size !== undefined);
    if (fields > most) [best, most] = [line, fields];
  }
  return best && { n: pico(best), d: 1n };
}

/** Left to upstream, it may turn out to be any. */
const could = (listed: Opt<string>, asked: Opt<string>): boolean =>
  listed === undefined || asked === undefined || asked === "auto" || listed === asked;

const picos = new WeakMap<PriceLine, bigint>();

/** Pico-dollars a unit: "0.0025" a million is 2,500 of them, and not a whole number of nano-dollars. */
export function pico(line: PriceLine): bigint {
  let value = picos.get(line);
  if (value === undefined)
    picos.set(line, (value = parseDecimal(line.usd, line.per === 1 ? 12 : 6)));
  return value;
}

function lifetime(unit: Unit, rate: Rate): Fraction | undefined {
  const at = LIFETIMES.indexOf(unit as (typeof LIFETIMES)[number]);
  if (at < 0) return undefined;
  for (let step = 1; step < LIFETIMES.length; step++)
    for (const other of [LIFETIMES[at + step], LIFETIMES[at - step]]) {
      const found = other && rate(other);
      if (found) return found;
    }
  return undefined;
}

/** Whether another unit that measures the same goods is counted and listed. */
function covered(unit: Unit, usage: Usage, rate: Rate): boolean {
  const alike = SAME_GOODS.find((units) => units.includes(unit)) ?? [];
  return alike.some((u) => u !== unit && (usage[u] ?? 0) > 0 && (rate(u) ?? rate(u, true)));
}

const hashes = new WeakMap<Price, string>();

/** The content of a price row: equal prices, equal hashes, whatever the order of their fields. */
export function priceHash(price: Price): string {
  let hash = hashes.get(price);
  if (hash === undefined) {
    const text = JSON.stringify(price, (_key, value: unknown) =>
      value && typeof value === "object" && !Array.isArray(value)
        ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
        : value,
    );
    hashes.set(price, (hash = createHash("sha256").update(text).digest("hex").slice(0, 32)));
  }
  return hash;
}
