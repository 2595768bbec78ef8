// What counts cost: a call's reports, each at the price of its own model, under the terms that upstream reports or, where
// it reports none, those that were asked for.
import { calculateBill, isExact, priceHash } from "../../money/price.ts";
import type { UsageReport } from "../../model/event.ts";
import type { Price } from "../../model/facts.ts";
import type { Usage } from "../../model/usage.ts";
import type { BillPart } from "../../plugin/store/store.ts";
import type { HostCall } from "../exchange/call.ts";
import { findReportPrice, type CatalogModels } from "./model-prices.ts";
import type { PriceTerms } from "./price-terms.ts";

/** `nano`: null where no price is known. `exact`: each count was charged at a rate that its price lists. */
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
  /** What the reserve was priced with: the bill is priced with the same. */
  terms: PriceTerms = {};
  pricedAt = 0;
  models: CatalogModels = NO_MODELS;
  /** The model that was asked for last, and its price: one call asks for one many times. */
  #lastLookup: { of: string | undefined; alone: boolean; price: Price | undefined } | undefined;

  constructor(call: HostCall) {
    this.#call = call;
  }

  /** Each report as it stands; an estimate, which belongs to no report, at the dearest of them. */
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

  /** A part of a bill whose model has no price costs what the most expensive of the other prices makes of it. */
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
    const bill = calculateBill(usage, price, {
      at: this.pricedAt,
      tier: seen?.tier ?? terms.tier,
      size: seen?.size ?? terms.size,
      quality: seen?.quality ?? terms.quality,
      pricingAttributes: { ...terms.pricingAttributes, ...seen?.pricingAttributes },
    });
    return bill ? { nano: bill.nano, isExact: isExact(bill) } : { nano: null, isExact: false };
  }

  #priceOf(seen: UsageReport | undefined, reports: UsageReports): Price | undefined {
    const { model, info } = this.#call;
    const of = seen?.model;
    const alone = reports.size < 2;
    const last = this.#lastLookup;
    if (last && last.of === of && last.alone === alone) return last.price;
    const price = findReportPrice(of, { model, price: info.price, shelf: this.models, alone });
    this.#lastLookup = { of, alone, price };
    return price;
  }

  /** Beside the one that the reserve pinned. */
  otherPrices(reports: UsageReports): readonly Price[] {
    let others: Price[] | undefined;
    for (const seen of reports.values()) {
      const price = this.#priceOf(seen, reports);
      if (price && price !== this.#call.info.price && !others?.includes(price))
        (others ??= []).push(price);
    }
    return others ?? NO_OTHERS;
  }

  /** A bill in parts keeps its parts, and so does one that another model's price was paid for. */
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
