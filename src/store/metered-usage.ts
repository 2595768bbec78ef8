// What a settled call used of a limit. What was not reported counts as taken: no report is not a refund.
import { inputTokens, outputTokens, type Limit } from "../plugin/index.ts";
import type { LedgerRow } from "./ledger-row.ts";

/** What a settled call counts for on a meter of this unit, of which it took so much. */
export function meteredUsage(
  unit: Limit["unit"],
  taken: bigint,
  of: Pick<LedgerRow, "state" | "usage" | "costNano">,
): bigint {
  // A request was made, whatever became of it.
  if (unit === "requests" || unit === "concurrent") return taken;
  if (of.state === "void") return 0n;
  if (unit === "nano_usd") return of.costNano ?? taken;
  const { usage } = of;
  if (unit === "images" || unit === "searches" || unit === "characters" || unit === "seconds")
    return usage[unit] === undefined ? taken : toWholeUnits(usage[unit]);
  const reported = Object.values(usage).some((count) => count !== undefined);
  if (!reported) return taken;
  const [input, output] = [inputTokens(usage), outputTokens(usage)];
  return toWholeUnits(unit === "input" ? input : unit === "output" ? output : input + output);
}

const toWholeUnits = (count: number): bigint => (count >= 0 ? BigInt(Math.ceil(count)) : 0n);
