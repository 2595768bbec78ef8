// Compares the spend of the current hour with the same hour of previous days.
import type { Context } from "tollgate/plugin";
import { formatUsd } from "../usd.ts";
import type { AlertSource } from "./alert.ts";

const HOUR_MS = 3_600_000;
const DAY_MS = 86_400_000;
const LOOKBACK_DAYS = 14;
/** Minimum number of days for a comparison. */
const MIN_DAYS = 3;

export interface UnusualSpendOptions {
  readonly factor: number;
  readonly minNano: bigint;
}

/**
 * Returns the median spend of this hour, over the days since the first spend. Undefined if there
 * are fewer than `MIN_DAYS` days.
 */
export function typicalSpend(spent: ReadonlyMap<number, bigint>, hour: number): bigint | undefined {
  const first = Math.min(...spent.keys());
  const days: bigint[] = [];
  for (let day = 1; day <= LOOKBACK_DAYS; day++) {
    const at = hour - day * DAY_MS;
    if (at < first) break;
    days.push(spent.get(at) ?? 0n);
  }
  if (days.length < MIN_DAYS) return undefined;
  const sorted = days.toSorted((a, b) => (a < b ? -1 : 1));
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2n;
}

/** Returns an alert, or undefined if the spend is normal or below the minimum. */
export async function checkSpend(
  ledger: Context["ledger"],
  { factor, minNano }: UnusualSpendOptions,
  now: number,
): Promise<AlertSource | undefined> {
  const hour = Math.floor(now / HOUR_MS) * HOUR_MS;
  const totals = await ledger.sumEntries({ from: hour - LOOKBACK_DAYS * DAY_MS, by: ["hour"] });
  const spent = new Map<number, bigint>();
  for (const { by, costNano } of totals) spent.set(parseHour(by["hour"]!), costNano);
  const usual = typicalSpend(spent, hour);
  const here = spent.get(hour) ?? 0n;
  if (usual === undefined || here <= minNano || here <= usual * BigInt(factor)) return undefined;
  return {
    type: "spend.unusual",
    at: now,
    subject: "spend",
    dedupKey: [hour],
    filterValues: {},
    data: { usd: formatUsd(here), usualUsd: formatUsd(usual), hour: new Date(hour).toISOString() },
  };
}

/** Parses the name of an hour as in ledger sums: "2026-06-01T12". */
const parseHour = (name: string): number => Date.parse(`${name.slice(0, 13)}:00:00Z`);
