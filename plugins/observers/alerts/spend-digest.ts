// Digest of the spend of a completed day or week. Periods are in UTC, as for budgets, and weeks
// start on Monday.
import type { Context } from "tollgate/plugin";
import { formatUsd } from "../usd.ts";
import type { AlertSource } from "./alert.ts";

const DAY_MS = 86_400_000;
const PERIODS_MS = { day: DAY_MS, week: 7 * DAY_MS } as const;
/** January 1, 1970 was a Thursday. */
const FIRST_MONDAY_MS = 4 * DAY_MS;
/** Number of most expensive models to list. */
const MAX_MODELS = 5;

export type DigestPeriod = keyof typeof PERIODS_MS;

/** Returns the last completed period. */
export function lastCompletePeriod(every: DigestPeriod, now: number): { from: number; to: number } {
  const [length, first] = [PERIODS_MS[every], every === "week" ? FIRST_MONDAY_MS : 0];
  const to = Math.floor((now - first) / length) * length + first;
  return { from: to - length, to };
}

/** Returns the digest, or undefined if the period has no requests. */
export async function createDigest(
  ledger: Context["ledger"],
  every: DigestPeriod,
  now: number,
): Promise<AlertSource | undefined> {
  const { from, to } = lastCompletePeriod(every, now);
  const sum = async (since: number, until: number) => {
    const rows = await ledger.sumEntries({ from: since, to: until, by: ["model"] });
    const total = rows.reduce((all, { costNano }) => all + costNano, 0n);
    return { rows, total, calls: rows.reduce((all, { calls }) => all + calls, 0) };
  };
  const [here, before] = [await sum(from, to), await sum(2 * from - to, from)];
  if (here.calls === 0) return undefined;
  const dearest = here.rows
    .toSorted((a, b) => (a.costNano === b.costNano ? 0 : a.costNano < b.costNano ? 1 : -1))
    .slice(0, MAX_MODELS)
    .map(({ by, costNano }) => `${by["model"]} ${formatUsd(costNano)}`);
  return {
    type: "spend.digest",
    at: now,
    subject: "spend",
    dedupKey: [every, from],
    filterValues: {},
    data: {
      every,
      from: new Date(from).toISOString(),
      to: new Date(to).toISOString(),
      calls: here.calls,
      usd: formatUsd(here.total),
      beforeUsd: formatUsd(before.total),
      models: dearest.join(", "),
    },
  };
}
