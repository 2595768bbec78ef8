// What a day or a week has cost, once it is over: in UTC, as budgets count them, weeks from Monday.
import type { Context } from "tollgate/plugin";
import { usd } from "../usd.ts";
import type { Happening } from "./alert.ts";

const DAY_MS = 86_400_000;
const LENGTHS = { day: DAY_MS, week: 7 * DAY_MS } as const;
/** The first of 1970 was a Thursday. */
const MONDAY = 4 * DAY_MS;
/** Models that are named, the dearest. */
const NAMED = 5;

export type DigestEvery = keyof typeof LENGTHS;

/** The last one that is over. */
export function lastOver(every: DigestEvery, now: number): { from: number; to: number } {
  const [length, first] = [LENGTHS[every], every === "week" ? MONDAY : 0];
  const to = Math.floor((now - first) / length) * length + first;
  return { from: to - length, to };
}

/** Undefined: nothing was asked in it. */
export async function ofPeriod(
  ledger: Context["ledger"],
  every: DigestEvery,
  now: number,
): Promise<Happening | undefined> {
  const { from, to } = lastOver(every, now);
  const sum = async (since: number, until: number) => {
    const rows = await ledger.totals({ from: since, to: until, by: ["model"] });
    const total = rows.reduce((all, { costNano }) => all + costNano, 0n);
    return { rows, total, calls: rows.reduce((all, { calls }) => all + calls, 0) };
  };
  const [here, before] = [await sum(from, to), await sum(2 * from - to, from)];
  if (here.calls === 0) return undefined;
  const dearest = here.rows
    .toSorted((a, b) => (a.costNano === b.costNano ? 0 : a.costNano < b.costNano ? 1 : -1))
    .slice(0, NAMED)
    .map(({ by, costNano }) => `${by["model"]} ${usd(costNano)}`);
  return {
    type: "spend.digest",
    at: now,
    subject: "spend",
    once: [every, from],
    facets: {},
    data: {
      every,
      from: new Date(from).toISOString(),
      to: new Date(to).toISOString(),
      calls: here.calls,
      usd: usd(here.total),
      beforeUsd: usd(before.total),
      models: dearest.join(", "),
    },
  };
}
