// What counts cost: a call's reports, each at the price of its own model, under the terms that upstream reports or, where
// it reports none, those that were asked for.
import { billOf, isExact, priceHash } from "../../money/price.ts";
import type { UsageSeen } from "../../model/event.ts";
import type { Price } from "../../model/facts.ts";
import type { Usage } from "../../model/usage.ts";
import type { BillPart } from "../../plugin/store.ts";
import type { HostCall } from "../call.ts";
import { priceOf, type ModelIndex } from "./model-prices.ts";
import type { PriceTerms } from "./price-terms.ts";

/** `nano`: null where no price is known. `exact`: each count was charged at a rate that its price lists. */
export interface Priced {
  readonly nano: bigint | null;
  readonly exact: boolean;
}

export type UsageReports = ReadonlyMap<string, UsageSeen>;

const NOTHING: ModelIndex = new Map();
const NO_OTHERS: readonly Price[] = [];
const UNPRICED: Priced = { nano: null, exact: false };

export class Pricing {
  readonly #call: HostCall;
  /** What the reserve was priced with: the bill is priced with the same. */
  terms: PriceTerms = {};
  at = 0;
  shelf: ModelIndex = NOTHING;
  /** The model that was asked for last, and its price: one call asks for one many times. */
  #asked: { of: string | undefined; alone: boolean; price: Price | undefined } | undefined;

  constructor(call: HostCall) {
    this.#call = call;
  }

  /** Each report as it stands; an estimate, which belongs to no report, at the dearest of them. */
  cost(usage: Usage, reports: UsageReports, estimated: boolean): Priced {
    if (reports.size < 2) return this.one(usage, only(reports), reports);
    const costs = [...reports.values()].map((seen) =>
      this.one(estimated ? usage : seen.usage, seen, reports),
    );
    return costs.reduce((sum, one) => ({
      nano:
        sum.nano === null || one.nano === null
          ? null
          : estimated
            ? larger(sum.nano, one.nano)
            : sum.nano + one.nano,
      exact: sum.exact && one.exact,
    }));
  }

  /** A part of a bill whose model has no price costs what the most expensive of the other prices makes of it. */
  one(usage: Usage, seen: UsageSeen | undefined, reports: UsageReports): Priced {
    const price = this.#priceOf(seen, reports);
    if (price) return this.#at(price, usage, seen);
    const { price: pinned } = this.#call.info;
    let nano = pinned ? this.#at(pinned, usage, seen).nano : null;
    for (const other of this.others(reports))
      nano = larger(nano, this.#at(other, usage, seen).nano);
    return nano === null ? UNPRICED : { nano, exact: false };
  }

  #at(price: Price, usage: Usage, seen: UsageSeen | undefined): Priced {
    const { terms } = this;
    const bill = billOf(usage, price, {
      at: this.at,
      tier: seen?.tier ?? terms.tier,
      size: seen?.size ?? terms.size,
      quality: seen?.quality ?? terms.quality,
      facts: { ...terms.facts, ...seen?.facts },
    });
    return bill ? { nano: bill.nano, exact: isExact(bill) } : { nano: null, exact: false };
  }

  #priceOf(seen: UsageSeen | undefined, reports: UsageReports): Price | undefined {
    const { model, info } = this.#call;
    const of = seen?.model;
    const alone = reports.size < 2;
    const last = this.#asked;
    if (last && last.of === of && last.alone === alone) return last.price;
    const price = priceOf(of, { model, price: info.price, shelf: this.shelf, alone });
    this.#asked = { of, alone, price };
    return price;
  }

  /** Beside the one that the reserve pinned. */
  others(reports: UsageReports): readonly Price[] {
    let others: Price[] | undefined;
    for (const seen of reports.values()) {
      const price = this.#priceOf(seen, reports);
      if (price && price !== this.#call.info.price && !others?.includes(price))
        (others ??= []).push(price);
    }
    return others ?? NO_OTHERS;
  }

  /** A bill in parts keeps its parts, and so does one that another model's price was paid for. */
  parts(reports: UsageReports): readonly BillPart[] | undefined {
    if (reports.size < 2 && this.others(reports).length === 0) return undefined;
    return [...reports.values()].map((seen) => {
      const price = this.#priceOf(seen, reports);
      return {
        model: seen.model ?? this.#call.model,
        tier: seen.tier,
        usage: seen.usage,
        price: price ? priceHash(price) : null,
        costNano: this.one(seen.usage, seen, reports).nano,
      };
    });
  }
}

const only = (reports: UsageReports): UsageSeen | undefined => reports.values().next().value;

export const larger = (a: bigint | null, b: bigint | null): bigint | null =>
  a === null || b === null ? (a ?? b) : a > b ? a : b;
