// A view of gateway.yaml: amounts in another currency and with a margin, at the rate of their day.
// The ledger stays in nano-dollars.
import { readFile } from "node:fs/promises";
import type { Dimension, UsageSum } from "../../admin/commands/ledger-commands.ts";
import type { GatewayConfig, ViewConfig } from "../../config/gateway-config.ts";
import { fail } from "../../model/error.ts";
import { formatDecimal } from "../../money/decimal.ts";
import { convert, fixedRate, parseRates, rateOn, type DailyRates } from "../../money/view.ts";

const DOLLARS: ViewConfig = {
  currency: "USD",
  rate: "1",
  ratesFile: undefined,
  margin: "0",
  accounts: [],
};

export class CurrencyView {
  readonly currency: string;
  /** Percent, as a decimal. */
  readonly margin: string;
  readonly #rates: DailyRates;

  constructor({ currency, margin }: Pick<ViewConfig, "currency" | "margin">, rates: DailyRates) {
    this.currency = currency;
    this.margin = margin;
    this.#rates = rates;
  }

  /** Returns the rate of a day as a decimal. Throws if there is none. */
  rateOn(day: string): string {
    return formatDecimal(rateOn(this.#rates, day), 9);
  }

  /** Returns the amount of a day in billionths of the currency. */
  amount(nano: bigint, day: string, margin = this.margin): bigint {
    return convert(nano, rateOn(this.#rates, day), margin);
  }
}

/** The view of amounts that no view changes. */
export const DOLLAR_VIEW = new CurrencyView(DOLLARS, fixedRate("1"));

/** Opens the view with a name. */
export const openNamedView = (
  { views }: Pick<GatewayConfig, "views">,
  name: string,
): Promise<CurrencyView> =>
  openView(
    views.get(name) ??
      fail(
        "not_found",
        `No view is named "${name}". Known views: ${[...views.keys()].join(", ") || "none"}.`,
        { code: "no_such_view" },
      ),
  );

/** Opens the first view that names the account or a parent of it. Default: US dollars. */
export function openAccountView(
  { views, accounts }: Pick<GatewayConfig, "views" | "accounts">,
  account: string,
): Promise<CurrencyView> {
  const own = new Set(account.split("/"));
  // Members that are added during the iteration are visited too, and each only once.
  for (const id of own) {
    const parent = accounts.get(id)?.parent;
    if (parent !== undefined) own.add(parent);
  }
  return openView(
    [...views.values()].find((view) => view.accounts.some((id) => own.has(id))) ?? DOLLARS,
  );
}

async function openView(view: ViewConfig): Promise<CurrencyView> {
  return new CurrencyView(view, await readRates(view));
}

async function readRates({ currency, rate, ratesFile }: ViewConfig): Promise<DailyRates> {
  if (ratesFile !== undefined) return parseRates(await readFile(ratesFile, "utf8"), ratesFile);
  if (rate !== undefined) return fixedRate(rate);
  return currency === "USD"
    ? fixedRate("1")
    : fail("invalid", `The view in ${currency} has no rate. Set rate or rates.`, {
        code: "no_rate",
      });
}

/** A sum with its amount in billionths of the currency of a view. */
export type ConvertedSum = UsageSum & { readonly amount: bigint };

/**
 * Returns sums without their days, with the amounts of each day converted at its rate.
 * @param by Dimensions of the result, without the day.
 */
export function convertSums(
  rows: readonly UsageSum[],
  by: readonly Dimension[],
  view: CurrencyView,
): readonly ConvertedSum[] {
  const groups = Map.groupBy(rows, (row) => JSON.stringify(by.map((each) => row.by[each] ?? null)));
  return [...groups.values()].map((members) => ({
    ...addSums(members, by),
    amount: members.reduce(
      (sum, { costNano, by: of }) => sum + view.amount(BigInt(costNano), of["day"] ?? ""),
      0n,
    ),
  }));
}

function addSums(members: readonly UsageSum[], by: readonly Dimension[]): UsageSum {
  const [first] = members;
  const usage: Record<string, number> = {};
  let costNano = 0n;
  let [calls, unpriced, estimated] = [0, 0, 0];
  for (const member of members) {
    for (const [unit, count] of Object.entries(member.usage))
      usage[unit] = (usage[unit] ?? 0) + (count ?? 0);
    costNano += BigInt(member.costNano);
    calls += member.calls;
    unpriced += member.unpriced;
    estimated += member.estimated;
  }
  const names = Object.fromEntries(by.map((each) => [each, first!.by[each]]));
  return { ...first!, by: names, calls, usage, costNano, unpriced, estimated };
}

/** Formats an amount of a view, with at least two decimal places. */
export const formatAmount = (amount: bigint): string => formatDecimal(amount, 9, 2);
