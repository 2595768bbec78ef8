// Combines the counts of one call from its request and from the provider's reports, and checks
// whether they are complete.
import type { Price } from "../../model/facts.ts";
import {
  inputTokens,
  mergeUsage,
  outputTokens,
  PIECE_UNITS,
  UNITS,
  type Unit,
  type Usage,
} from "../../model/usage.ts";
import type { Opt } from "../../model/values.ts";
import type { OperationSpec } from "../../model/operations/operation-spec.ts";

/**
 * Whether a report contains all units by which this operation is measured, and a unit that the
 * price has a line for.
 */
export const isComplete = (
  usage: Usage,
  { completeUnitSets }: OperationSpec,
  price?: Price,
): boolean =>
  completeUnitSets.some((units) => units.every((unit) => usage[unit] !== undefined)) &&
  (!price || hasPriceLine(usage, price));

/** Whether the price has a line for a reported unit. Every price covers a report of nothing. */
function hasPriceLine(usage: Usage, price: Price): boolean {
  let used = false;
  for (const unit of UNITS)
    if ((usage[unit] ?? 0) > 0) {
      if (pricesUnit(price, unit)) return true;
      used = true;
    }
  return !used;
}

const pricesUnit = ({ lines }: Price, unit: Unit): boolean =>
  lines.some((line) => line.unit === unit);

/**
 * Returns the larger of two cumulative reports, separately for input, output, and each independent
 * unit. A decreasing report is an error of the provider, not a discount.
 */
export function mergeReports(before: Usage, now: Usage): Usage {
  const merged: { -readonly [U in Unit]?: Opt<number> } = mergeUsage(before, now);
  for (const [units, sum] of [
    [INPUT_UNITS, inputTokens],
    [OUTPUT_UNITS, outputTokens],
  ] as const)
    if (sum(merged) < sum(before))
      for (const unit of units)
        if (before[unit] === undefined) delete merged[unit];
        else merged[unit] = before[unit];
  for (const unit of INDEPENDENT_UNITS)
    if ((before[unit] ?? 0) > (merged[unit] ?? 0)) merged[unit] = before[unit];
  return merged;
}

const OUTPUT_UNITS: readonly Unit[] = ["output", "audio_out", "image_out"];
const INDEPENDENT_UNITS: readonly Unit[] = ["reasoning", ...PIECE_UNITS];
const INPUT_UNITS: readonly Unit[] = UNITS.filter(
  (unit) => !OUTPUT_UNITS.includes(unit) && !INDEPENDENT_UNITS.includes(unit),
);

/**
 * Adds counts that the request determines and the provider did not report, if the price has lines
 * for them. Without a price, these counts complete the report: such a call is counted, and only its
 * cost is unknown.
 */
export function addRequestCounts(
  usage: Usage,
  counts: Usage | undefined,
  price: Price | undefined,
  work: OperationSpec,
): Usage {
  if (!counts || (!price && isComplete(usage, work))) return usage;
  const both: { -readonly [U in Unit]?: Opt<number> } = { ...usage };
  for (const unit of UNITS)
    if (counts[unit] !== undefined && (!price || pricesUnit(price, unit)))
      both[unit] ??= counts[unit];
  return both;
}

/**
 * Returns one run for each requested hosted tool whose runs neither the provider nor the protocol
 * counts.
 */
export function assumeToolRuns(
  usage: Usage,
  requestedTools: readonly Unit[] = [],
  countedTools: readonly Unit[] = [],
): Usage | undefined {
  // Most requests use no hosted tool.
  if (requestedTools.length === 0) return undefined;
  const missing = requestedTools.filter(
    (unit) => usage[unit] === undefined && !countedTools.includes(unit),
  );
  return missing.length > 0 ? Object.fromEntries(missing.map((unit) => [unit, 1])) : undefined;
}

export const hasTokens = ({ usage }: { usage: Usage }): boolean =>
  inputTokens(usage) + outputTokens(usage) > 0;

export function addUsage(a: Usage, b: Usage): Usage {
  const both: { -readonly [U in Unit]?: Opt<number> } = { ...a };
  for (const unit of UNITS)
    if (b[unit] !== undefined) both[unit] = (both[unit] ?? 0) + (b[unit] ?? 0);
  return both;
}
