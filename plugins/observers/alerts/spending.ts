// Spend of this hour beside what the same hour of the days before has cost.
import type { Context } from "tollgate/plugin";
import { usd } from "../usd.ts";
import type { Happening } from "./alert.ts";

const HOUR_MS = 3_600_000;
const DAY_MS = 86_400_000;
const DAYS = 14;
/** With fewer days nothing is usual yet. */
const FEWEST_DAYS = 3;

export interface Unusual {
  readonly times: number;
  readonly floorNano: bigint;
}

/** Of the days since the first that has cost anything. Undefined: there are too few of them. */
export function usualOf(spent: ReadonlyMap<number, bigint>, hour: number): bigint | undefined {
  const first = Math.min(...spent.keys());
  const days: bigint[] = [];
  for (let day = 1; day <= DAYS; day++) {
    const at = hour - day * DAY_MS;
    if (at < first) break;
    days.push(spent.get(at) ?? 0n);
  }
  if (days.length < FEWEST_DAYS) return undefined;
  const sorted = days.toSorted((a, b) => (a < b ? -1 : 1));
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2n;
}

/** Undefined: it is as usual, or too little to speak of. */
export async function ofSpending(
  ledger: Context["ledger"],
  { times, floorNano }: Unusual,
  now: number,
): Promise<Happening | undefined> {
  const hour = Math.floor(now / HOUR_MS) * HOUR_MS;
  const totals = await ledger.totals({ from: hour - DAYS * DAY_MS, by: ["hour"] });
  const spent = new Map<number, bigint>();
  for (const { by, costNano } of totals) spent.set(hourOf(by["hour"]!), costNano);
  const usual = usualOf(spent, hour);
  const here = spent.get(hour) ?? 0n;
  if (usual === undefined || here <= floorNano || here <= usual * BigInt(times)) return undefined;
  return {
    type: "spend.unusual",
    at: now,
    subject: "spend",
    once: [hour],
    facets: {},
    data: { usd: usd(here), usualUsd: usd(usual), hour: new Date(hour).toISOString() },
  };
}

/** As sums name an hour: "2026-06-01T12". */
const hourOf = (name: string): number => Date.parse(`${name.slice(0, 13)}:00:00Z`);
