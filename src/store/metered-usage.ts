// Usage of a settled call against a limit. If usage was not reported, the reserved amount counts,
// because a missing report is not a refund.
import { inputTokens, outputTokens, type Limit } from "../plugin/index.ts";
import type { LedgerRow } from "./ledger-row.ts";

/** Returns the usage of a settled call on a meter of this unit. `taken`: the reserved amount. */
export function meteredUsage(
  unit: Limit["unit"],
  taken: bigint,
  of: Pick<LedgerRow, "state" | "usage" | "costNano">,
): bigint {
  // The request was made, whatever its result.
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
