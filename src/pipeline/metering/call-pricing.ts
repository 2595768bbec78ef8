// Calculates the cost of usage. Each report of a call is charged at the price of the model in the
// report, under the terms that the provider reports. If the provider reports none, the requested
// terms apply.
import { calculateBill, isExact, priceHash } from "../../money/price.ts";
import type { UsageReport } from "../../model/event.ts";
import type { Price } from "../../model/facts.ts";
import type { Usage } from "../../model/usage.ts";
import type { BillPart } from "../../plugin/store/store.ts";
import type { HostCall } from "../exchange/call.ts";
import type { PriceTerms } from "./price-terms.ts";
import type { CatalogEntry } from "../../catalog/catalog.ts";
import type { Opt } from "../../model/values.ts";

/**
 * The cost of a usage. `nano`: nanodollars, or null if no price is known. `isExact`: whether each
 * count was charged at a rate that its price lists.
 */
export interface PricedUsage {
  readonly nano: bigint | null;
  readonly isExact: boolean;
}

export type UsageReports = ReadonlyMap<string, UsageReport>;

const NO_MODELS: CatalogModels = new Map();
const NO_OTHERS: readonly Price[] = [];
const UNPRICED: PricedUsage = { nano: null, isExact: false };

export class CallPricing {
  readonly #call: HostCall;
  /** Terms with which the reservation was priced. The bill uses the same terms. */
  terms: PriceTerms = {};
  pricedAt = 0;
  models: CatalogModels = NO_MODELS;
  /** The last lookup and its result. One call looks up the same model many times. */
  #lastLookup: { of: string | undefined; alone: boolean; price: Price | undefined } | undefined;

  constructor(call: HostCall) {
    this.#call = call;
  }

  /**
   * Calculates the cost of all reports. An estimate belongs to no single report, so the most
   * expensive price of the reports applies.
   */
  cost(usage: Usage, reports: UsageReports, estimated: boolean): PricedUsage {
    if (reports.size < 2) return this.costOfReport(usage, firstReport(reports), reports);
    const costs = [...reports.values()].map((seen) =>
      this.costOfReport(estimated ? usage : seen.usage, seen, reports),
    );
    return costs.reduce((sum, one) => ({
      nano:
        sum.nano === null || one.nano === null
          ? null
          : estimated
            ? largerCost(sum.nano, one.nano)
            : sum.nano + one.nano,
      isExact: sum.isExact && one.isExact,
    }));
  }

  /**
   * Calculates the cost of one report. If its model has no price, the most expensive of the other
   * prices applies.
   */
  costOfReport(usage: Usage, seen: UsageReport | undefined, reports: UsageReports): PricedUsage {
    const price = this.#priceOf(seen, reports);
    if (price) return this.#costAt(price, usage, seen);
    const { price: pinned } = this.#call.info;
    let nano = pinned ? this.#costAt(pinned, usage, seen).nano : null;
    for (const other of this.otherPrices(reports))
      nano = largerCost(nano, this.#costAt(other, usage, seen).nano);
    return nano === null ? UNPRICED : { nano, isExact: false };
  }

  #costAt(price: Price, usage: Usage, seen: UsageReport | undefined): PricedUsage {
    const { terms } = this;
    // A provider reports the tier of the request, not that of the batch.
    const reportedTier = this.#call.exchange.jobLine?.terms ? undefined : seen?.tier;
    const bill = calculateBill(usage, price, {
      at: this.pricedAt,
      tier: reportedTier ?? terms.tier,
      size: seen?.size ?? terms.size,
      quality: seen?.quality ?? terms.quality,
      pricingAttributes: { ...terms.pricingAttributes, ...seen?.pricingAttributes },
    });
    return bill ? { nano: bill.nano, isExact: isExact(bill) } : { nano: null, isExact: false };
  }

  #priceOf(seen: UsageReport | undefined, reports: UsageReports): Price | undefined {
    const { model, info, exchange } = this.#call;
    const of = seen?.model;
    const alone = reports.size < 2;
    // The price of a line is that of the time when its job was created. The catalog may have changed.
    if (exchange.jobLine && alone) return info.price;
    const last = this.#lastLookup;
    if (last && last.of === of && last.alone === alone) return last.price;
    const price = findReportPrice(of, { model, price: info.price, shelf: this.models, alone });
    this.#lastLookup = { of, alone, price };
    return price;
  }

  /** Returns the prices in use other than the price that the reservation pinned. */
  otherPrices(reports: UsageReports): readonly Price[] {
    let others: Price[] | undefined;
    for (const seen of reports.values()) {
      const price = this.#priceOf(seen, reports);
      if (price && price !== this.#call.info.price && !others?.includes(price))
        (others ??= []).push(price);
    }
    return others ?? NO_OTHERS;
  }

  /**
   * Returns the parts of a bill. A bill has parts if there are several reports, or if another
   * model's price was charged.
   */
  billParts(reports: UsageReports): readonly BillPart[] | undefined {
    if (reports.size < 2 && this.otherPrices(reports).length === 0) return undefined;
    return [...reports.values()].map((seen) => {
      const price = this.#priceOf(seen, reports);
      return {
        model: seen.model ?? this.#call.model,
        tier: seen.tier,
        usage: seen.usage,
        price: price ? priceHash(price) : null,
        costNano: this.costOfReport(seen.usage, seen, reports).nano,
      };
    });
  }
}

const firstReport = (reports: UsageReports): UsageReport | undefined =>
  reports.values().next().value;

export const largerCost = (a: bigint | null, b: bigint | null): bigint | null =>
  a === null || b === null ? (a ?? b) : a > b ? a : b;

// Decides which model's price applies to a report. A provider may answer with a model other than
// the called model: its own fallback, an advisor model, or the model behind an alias or a router.
/** The provider's models as the catalog listed them when the call was reserved. */
export type CatalogModels = ReadonlyMap<string, CatalogEntry>;
/**
 * Returns the model name without a date. Dated names are "claude-opus-5-20260528",
 * "gpt-5-2025-08-07", or "claude-opus-5@20260528".
 */
const withoutDate = (model: string): string => model.replace(/[-@]\d{4}-?\d{2}-?\d{2}$/, "");
/**
 * Returns the price for a report. If a bill has several parts, each part has the price of its
 * model, or no price. A bill with one part has the price of the called model, whatever name the
 * provider reports. Exception: if the reported name is another model with a price, and the operator
 * did not set the called model's price, the other model's price applies.
 */
export function findReportPrice(
  reportedModel: Opt<string>,
  called: { model: string; price: Opt<Price>; shelf: CatalogModels; alone: boolean },
): Price | undefined {
  const { model, price, shelf, alone } = called;
  if (reportedModel === undefined || reportedModel === model) return price;
  const listed = shelf.get(reportedModel) ?? shelf.get(withoutDate(reportedModel));
  if (!alone) return withoutDate(reportedModel) === withoutDate(model) ? price : listed?.info.price;
  const isVariant = reportedModel.startsWith(model) || model.startsWith(reportedModel);
  const isSetByOperator = shelf.get(model)?.sources["price"]?.from === "operator";
  return isVariant || isSetByOperator ? price : (listed?.info.price ?? price);
}
