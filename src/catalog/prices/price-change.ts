// Measures the difference between a new price and an old price.
import type { Price, PriceLine } from "../../model/facts.ts";
import type { Unit, Usage } from "../../model/usage.ts";
import { compareFractions, type Fraction } from "../../money/decimal.ts";
import { calculateBill, type PricingContext } from "../../money/price.ts";
import { rowsOf } from "./price-document.ts";

/** The rate of one unit under certain terms, before and after a change. */
export interface RateChange {
  /** Unit with its terms: "input", "output, tier batch", "input, over 200000". */
  readonly figure: string;
  /** Pico-dollars per unit, rounded. Undefined: the price lists no such rate. */
  readonly before: bigint | undefined;
  readonly after: bigint | undefined;
  /** Change in percent, rounded up. Infinity from zero. 0 if the rate only appeared. */
  readonly percent: number;
  /** Whether the rate disappeared. */
  readonly removed: boolean;
}

const DAY_MS = 86_400_000;

/**
 * Returns all rates that differ between two prices, at any moment from `now` on. Rates of tiers,
 * brackets, variants, and multipliers are compared one by one.
 */
export function compareRates(before: Price, after: Price, now: number): readonly RateChange[] {
  const changes = new Map<string, RateChange>();
  for (const at of momentsOf([before, after], now))
    for (const { figure, unit, usage, context } of listFigures([before, after])) {
      const [old, next] = [before, after].map((price) =>
        rateOf(price, unit, usage, { ...context, at }),
      );
      if (!old && !next) continue;
      const change = { figure, ...describe(old, next) };
      const known = changes.get(figure);
      const isWorse =
        !known || change.percent > known.percent || (change.removed && !known.removed);
      if (old && next && compareFractions(old, next) === 0) continue;
      if (isWorse) changes.set(figure, change);
    }
  return [...changes.values()];
}

function describe(
  old: Fraction | undefined,
  next: Fraction | undefined,
): Omit<RateChange, "figure"> {
  const before = old && pico(old);
  const after = next && pico(next);
  if (!old || !next) return { before, after, percent: 0, removed: old !== undefined };
  const [a, b] = [old.n * next.d, next.n * old.d];
  const difference = a > b ? a - b : b - a;
  const percent = a === 0n ? Infinity : Number((difference * 10_000n + a - 1n) / a) / 100;
  return { before, after, percent, removed: false };
}

/** A rate is a fraction of nano-dollars. */
const pico = ({ n, d }: Fraction): bigint => (n * 1_000n) / d;

interface Figure {
  readonly figure: string;
  readonly unit: Unit;
  readonly usage: Usage;
  readonly context: PricingContext;
}

/** Lists every combination of unit and terms that any of these prices names. */
function listFigures(prices: readonly Price[]): readonly Figure[] {
  const rows = prices.flatMap(rowsOf);
  const lines = rows.flatMap((row) => [
    ...row.lines,
    ...(row.over ?? []).flatMap((over) => [
      ...over.lines,
      ...Object.values(over.tiers ?? {}).flat(),
    ]),
    ...Object.values(row.tiers ?? {}).flat(),
  ]);
  const units = new Set(lines.map(({ unit }) => unit));
  const tiers = new Set<string | undefined>([
    undefined,
    ...rows
      .flatMap(({ tiers = {}, over = [] }) => [tiers, ...over.map((each) => each.tiers ?? {})])
      .flatMap((named) => Object.keys(named).map((tier) => (tier === "*" ? "any" : tier))),
  ]);
  const brackets = new Set([0, ...rows.flatMap(({ over = [] }) => over.map(({ input }) => input))]);
  const figures: Figure[] = [];
  for (const unit of units)
    for (const tier of tiers)
      for (const bracket of brackets)
        figures.push({
          figure: [unit, tier && `tier ${tier}`, bracket > 0 && `over ${bracket}`]
            .filter(Boolean)
            .join(", "),
          unit,
          usage: usageOf(unit, bracket),
          context: { tier },
        });
  for (const { unit, variant } of lines)
    if (variant)
      figures.push({
        figure: `${unit}, ${describeVariant(variant)}`,
        unit,
        usage: variant.first ? { [unit]: 1 } : { [unit]: 2 },
        context: { quality: variant.quality, size: variant.size },
      });
  for (const { when } of rows.flatMap(({ multipliers = [] }) => multipliers))
    for (const unit of units) {
      const { tier, ...pricingAttributes } = when;
      const terms = Object.entries(when).map(([name, value]) => `${name} ${value}`);
      figures.push({
        figure: [unit, ...terms].join(", "),
        unit,
        usage: { [unit]: 1 },
        context: { tier, pricingAttributes },
      });
    }
  return figures;
}

const describeVariant = ({ quality, size, first }: NonNullable<PriceLine["variant"]>): string =>
  [quality, size, first && "first"].filter(Boolean).join(" ") || "any";

const usageOf = (unit: Unit, bracket: number): Usage =>
  bracket === 0
    ? { [unit]: 2 }
    : unit === "input"
      ? { input: bracket + 1 }
      : { input: bracket + 1, [unit]: 2 };

/** Returns the rate per unit if the price lists one, in nano-dollars. */
function rateOf(
  price: Price,
  unit: Unit,
  usage: Usage,
  context: PricingContext,
): Fraction | undefined {
  const bill = calculateBill(usage, price, context);
  if (!bill || bill.unknownTier !== undefined || bill.unpricedUnits.includes(unit))
    return undefined;
  const charged = bill.lines.filter((line) => line.unit === unit);
  const last = charged.at(-1);
  return last && { n: last.nano.n, d: last.nano.d * BigInt(last.count) };
}

/** Returns the moments from now on at which another row of a price can begin. */
function momentsOf(prices: readonly Price[], now: number): readonly number[] {
  const moments = new Set([now]);
  const today = Math.floor(now / DAY_MS) * DAY_MS;
  for (const { from, until, hours } of prices.flatMap(rowsOf)) {
    if (from !== undefined) moments.add(Date.parse(from.slice(0, 10)));
    if (until !== undefined) moments.add(Date.parse(until.slice(0, 10)) + DAY_MS);
    if (hours)
      for (let day = 0; day <= 7; day++)
        for (const time of [hours.from, hours.to])
          moments.add(
            Date.parse(`${new Date(today + day * DAY_MS).toISOString().slice(0, 10)}T${time}:00Z`),
          );
  }
  return [...moments].filter((at) => at >= now);
}
