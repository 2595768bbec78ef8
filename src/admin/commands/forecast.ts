// Forecasts spend: how much a day costs, what this month will cost, and when each budget will be
// exhausted. The rate is the mean of the last complete days, so a forecast never predicts a change.
import { wallClock } from "../../lib/time/wall-clock.ts";
import { nanoToDecimal } from "../../money/decimal.ts";
import { formatLimit, type Limit, type LimitUsage } from "../../plugin/store/limit.ts";
import type { GatewayEvent } from "../../plugin/gateway-event.ts";
import type { LedgerTotal } from "../../plugin/store/ledger-entry.ts";
import type { Store } from "../../plugin/store/store.ts";
import { isWithinAccount } from "../../runtime/requests/series-selection.ts";
import type { AccountTree } from "../access/account-tree.ts";
import type { KeyRepository } from "../access/key-repository.ts";
import { withInputChecks } from "../dispatch/command-input.ts";

/** Forecast of one budget in US dollars. */
export interface BudgetForecast {
  readonly subject: "key" | "account";
  readonly id: string;
  readonly name: string | undefined;
  /** The limit as text, such as "usd=100/month". */
  readonly limit: string;
  readonly usedUsd: string;
  readonly maxUsd: string;
  readonly perDayUsd: string;
  /** ISO instant at which the budget is exhausted. Null if it resets first, or if nothing is spent. */
  readonly exhaustsAt: string | null;
  /** ISO instant. Null for a budget without a reset. */
  readonly resetsAt: string | null;
}

/** Result of `usage.forecast`. */
export interface SpendForecast {
  /** Mean spend per day in US dollars. */
  readonly perDayUsd: string;
  /** Number of complete days that the mean is based on. */
  readonly days: number;
  /** Spend of the current month in UTC so far, and at its end. */
  readonly month: { readonly spentUsd: string; readonly projectedUsd: string };
  /** Budgets, soonest exhausted first. */
  readonly budgets: readonly BudgetForecast[];
}

const DAY_MS = 86_400_000;
const DEFAULT_DAYS = 14;
const MAX_BUDGETS = 10_000;

/** Spend by UTC day, such as "2026-11-27", in nano-dollars. */
type SpendByDay = ReadonlyMap<string, bigint>;

export interface BurnRate {
  readonly nanoPerDay: bigint;
  readonly days: number;
}

const dayOf = (at: number): string => new Date(at).toISOString().slice(0, 10);
const startOfDay = (at: number): number => Math.floor(at / DAY_MS) * DAY_MS;

/**
 * Returns the mean spend of the last complete days, from the first day with spend on. If there is
 * none, the spend of today is extrapolated.
 */
export function burnRateOf(spend: SpendByDay, now: number, maxDays: number): BurnRate {
  const today = startOfDay(now);
  let sum = 0n;
  let days = 0;
  for (let back = 1; back <= maxDays; back++) {
    const nano = spend.get(dayOf(today - back * DAY_MS)) ?? 0n;
    sum += nano;
    if (nano !== 0n) days = back;
  }
  if (days > 0) return { nanoPerDay: sum / BigInt(days), days };
  const elapsedMs = Math.max(now - today, DAY_MS / 24);
  const nano = spend.get(dayOf(now)) ?? 0n;
  return { nanoPerDay: (nano * BigInt(DAY_MS)) / BigInt(elapsedMs), days: 0 };
}

/**
 * Returns when a budget will be exhausted at this rate, in Unix milliseconds. Undefined if it
 * resets first, or if nothing is spent.
 */
export function exhaustionOf(
  usage: Pick<LimitUsage, "used" | "max" | "per" | "resetsAt">,
  { nanoPerDay }: BurnRate,
  now: number,
): number | undefined {
  const left = BigInt(usage.max) - BigInt(usage.used);
  if (left <= 0n) return now;
  if (nanoPerDay <= 0n) return undefined;
  const at = now + Number((left * BigInt(DAY_MS)) / nanoPerDay);
  // A date that JavaScript cannot represent is as good as never.
  if (at > 8.64e15) return undefined;
  return usage.per !== "total" && at >= usage.resetsAt ? undefined : at;
}

/** Returns the spend of the current month so far, and at its end. */
export function projectMonth(spend: SpendByDay, { nanoPerDay }: BurnRate, now: number) {
  const month = dayOf(now).slice(0, 7);
  const spent = [...spend]
    .filter(([day]) => day.startsWith(month))
    .reduce((sum, [, nano]) => sum + nano, 0n);
  const date = new Date(now);
  const end = Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1, 1);
  return { spent, projected: spent + (nanoPerDay * BigInt(end - now)) / BigInt(DAY_MS) };
}

export interface ForecastOptions {
  readonly store: Pick<Store, "sumEntries">;
  readonly repository: Pick<KeyRepository, "listKeys" | "readLimits">;
  readonly readTree: () => Promise<AccountTree>;
}

export const createForecastCommand = (options: ForecastOptions, clock = wallClock) =>
  withInputChecks({
    "usage.forecast": ({ account, days }): Promise<SpendForecast> =>
      forecastSpend(options, clock(), account, days),
  });

async function forecastSpend(
  options: ForecastOptions,
  now: number,
  account?: string,
  days = DEFAULT_DAYS,
): Promise<SpendForecast> {
  // The month may have begun before the days that the rate is based on.
  const from = Math.min(
    startOfDay(now) - days * DAY_MS,
    Date.parse(`${dayOf(now).slice(0, 7)}-01`),
  );
  const read = async (by: "key" | "account" | undefined) =>
    options.store.sumEntries({ from, account, by: by === undefined ? ["day"] : [by, "day"] });
  const [all, keys, accounts] = await Promise.all([read(undefined), read("key"), read("account")]);
  const total = spendOf(all);
  const rate = burnRateOf(total, now, days);
  const month = projectMonth(total, rate, now);
  const spends = { key: groupSpend(keys, "key"), account: groupSpend(accounts, "account") };
  const budgets = await listBudgets(options, account, now);
  const counted = await options.repository.readLimits(budgets.map(({ limit }) => limit));
  return {
    perDayUsd: nanoToDecimal(rate.nanoPerDay),
    days: rate.days,
    month: {
      spentUsd: nanoToDecimal(month.spent),
      projectedUsd: nanoToDecimal(month.projected),
    },
    budgets: counted
      .map((usage, i) => forecastBudget(usage, budgets[i]!, { spends, now, days }))
      .toSorted((a, b) => ((a.exhaustsAt ?? "9") < (b.exhaustsAt ?? "9") ? -1 : 1)),
  };
}

/** How far ahead an exhausted budget is reported, in milliseconds. */
const NOTICE_MS = 7 * DAY_MS;

type BudgetExhausts = Extract<GatewayEvent, { type: "budget_exhausts" }>;

/** Finds budgets that will be exhausted before they reset. Each is returned once per window. */
export class BudgetWatch {
  readonly #options: ForecastOptions;
  /** Windows of budgets that were reported. */
  #reported: ReadonlySet<string> = new Set();

  constructor(options: ForecastOptions) {
    this.#options = options;
  }

  async check(now = wallClock()): Promise<readonly BudgetExhausts[]> {
    const { budgets } = await forecastSpend(this.#options, now);
    const events: BudgetExhausts[] = [];
    const windows = new Set<string>();
    for (const budget of budgets) {
      const { subject, id, limit, usedUsd, maxUsd, perDayUsd, resetsAt } = budget;
      const window = JSON.stringify([subject, id, limit, resetsAt]);
      if (this.#reported.has(window)) {
        windows.add(window);
        continue;
      }
      const exhaustsAt = budget.exhaustsAt === null ? Infinity : Date.parse(budget.exhaustsAt);
      // The events of thresholds report a budget that is exhausted.
      if (exhaustsAt <= now || exhaustsAt > now + NOTICE_MS) continue;
      windows.add(window);
      events.push({
        type: "budget_exhausts",
        at: now,
        scope: `${subject}:${id}`,
        limit,
        usedUsd,
        maxUsd,
        perDayUsd,
        exhaustsAt,
        ...(resetsAt !== null && { resetsAt: Date.parse(resetsAt) }),
      });
    }
    this.#reported = windows;
    return events;
  }
}

interface Budget extends Pick<BudgetForecast, "subject" | "id" | "name"> {
  readonly limit: Limit;
  /** Name of the subject in ledger sums: the key's ID, or the account's path. */
  readonly sumName: string;
}

function forecastBudget(
  usage: LimitUsage,
  { subject, id, name, sumName, limit }: Budget,
  {
    spends,
    now,
    days,
  }: {
    readonly spends: Readonly<Record<Budget["subject"], ReadonlyMap<string, SpendByDay>>>;
    readonly now: number;
    readonly days: number;
  },
): BudgetForecast {
  const rate = burnRateOf(spends[subject].get(sumName) ?? new Map(), now, days);
  const at = exhaustionOf(usage, rate, now);
  return {
    subject,
    id,
    name,
    limit: formatLimit(limit),
    usedUsd: nanoToDecimal(BigInt(usage.used)),
    maxUsd: nanoToDecimal(BigInt(usage.max)),
    perDayUsd: nanoToDecimal(rate.nanoPerDay),
    exhaustsAt: at === undefined ? null : new Date(at).toISOString(),
    resetsAt: usage.per === "total" ? null : new Date(usage.resetsAt).toISOString(),
  };
}

/** Returns the budgets in US dollars of valid keys and open accounts. */
async function listBudgets(
  { repository, readTree }: ForecastOptions,
  account: string | undefined,
  now: number,
): Promise<readonly Budget[]> {
  const [tree, keys] = await Promise.all([readTree(), repository.listKeys()]);
  const isWithin = (path: string | undefined) =>
    account === undefined || isWithinAccount(path, account);
  const budgetsOf = (whose: Omit<Budget, "limit">, limits: readonly Limit[] = []): Budget[] =>
    limits.filter(({ unit }) => unit === "nano_usd").map((limit) => ({ ...whose, limit }));
  return [
    ...tree
      .all()
      .filter(({ id, closedAt }) => closedAt === undefined && isWithin(tree.path(id)))
      .flatMap(({ id, name, limits }) =>
        budgetsOf({ subject: "account", id, name, sumName: tree.path(id) }, limits),
      ),
    ...keys
      .filter(({ revoked, expires }) => (revoked ?? Infinity) > now && (expires ?? Infinity) > now)
      .filter((key) => isWithin(key.account && tree.path(key.account)))
      .flatMap(({ id, name, limits }) =>
        budgetsOf({ subject: "key", id, name, sumName: id }, limits),
      ),
  ].slice(0, MAX_BUDGETS);
}

const spendOf = (totals: readonly LedgerTotal[]): SpendByDay =>
  new Map(totals.map(({ by, costNano }) => [by["day"] ?? "", BigInt(costNano)]));

const groupSpend = (totals: readonly LedgerTotal[], by: string): ReadonlyMap<string, SpendByDay> =>
  new Map(
    [...Map.groupBy(totals, (total) => total.by[by] ?? "")].map(([name, rows]) => [
      name,
      spendOf(rows),
    ]),
  );
