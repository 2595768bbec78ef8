// Counts of one call: what its request decided, what upstream reported of it, and whether that is all.
import type { Price } from "../../model/facts.ts";
import { UNITS, type Unit, type Usage } from "../../model/usage.ts";
import type { Opt } from "../../model/values.ts";
import type { Work } from "../../model/work.ts";

export const isWhole = (usage: Usage, { whole }: Work): boolean =>
  whole.some((units) => units.every((unit) => usage[unit] !== undefined));

/**
 * What the request decided and upstream did not report, where the price has lines for it. Without a price it is what makes a
 * report whole: such a call is counted, and only its price is not known.
 */
export function counted(
  usage: Usage,
  counts: Usage | undefined,
  price: Price | undefined,
  work: Work,
): Usage {
  if (!counts || (!price && isWhole(usage, work))) return usage;
  const both: { -readonly [U in Unit]?: Opt<number> } = { ...usage };
  for (const unit of UNITS)
    if (counts[unit] !== undefined && (!price || price.lines.some((line) => line.unit === unit)))
      both[unit] ??= counts[unit];
  return both;
}

export function sum(a: Usage, b: Usage): Usage {
  const both: { -readonly [U in Unit]?: Opt<number> } = { ...a };
  for (const unit of UNITS)
    if (b[unit] !== undefined) both[unit] = (both[unit] ?? 0) + (b[unit] ?? 0);
  return both;
}
