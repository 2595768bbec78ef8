// Usage of a settled call against a limit. If usage was not reported, the reserved amount counts,
// because a missing report is not a refund.
import { inputTokens, outputTokens, type LedgerUnit, type Limit } from "../plugin/index.ts";
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
  // The client paid the provider, so no budget of money changes.
  if (unit === "nano_usd" && of.state === "external") return 0n;
  if (unit === "calls") return taken;
  if (unit === "nano_usd") return of.costNano ?? taken;
  const { usage } = of;
  if (unit === "images" || unit === "searches" || unit === "characters" || unit === "seconds")
    return usage[unit] === undefined ? taken : toWholeUnits(usage[unit]);
  let isReported = false;
  for (const name in usage)
    if (name !== "list_nano_usd" && usage[name as LedgerUnit] !== undefined) isReported = true;
  if (!isReported) return taken;
  const [input, output] = [inputTokens(usage), outputTokens(usage)];
  return toWholeUnits(unit === "input" ? input : unit === "output" ? output : input + output);
}

const toWholeUnits = (count: number): bigint => (count >= 0 ? BigInt(Math.ceil(count)) : 0n);
