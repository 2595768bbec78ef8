// What counts cost: a call's reports, each at the price of its own model, under the terms that upstream reports or, where
// it reports none, those that were asked for.
import { cost, priceHash } from "../../money/price.ts";
import type { UsageSeen } from "../../model/event.ts";
import type { Price } from "../../model/facts.ts";
import type { Usage } from "../../model/usage.ts";
import type { BillPart } from "../../plugin/store.ts";
import type { HostCall } from "../call.ts";
import { priceOf, type ModelIndex } from "./model-prices.ts";
import type { PriceTerms } from "./price-terms.ts";

export type UsageReports = ReadonlyMap<string, UsageSeen>;

const NOTHING: ModelIndex = new Map();

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
  cost(usage: Usage, reports: UsageReports, estimated: boolean): bigint | null {
    if (reports.size < 2) return this.one(usage, only(reports), reports);
    const costs = [...reports.values()].map((seen) =>
      this.one(estimated ? usage : seen.usage, seen, reports),
    );
    return costs.reduce((sum, one) =>
      sum === null || one === null ? null : estimated ? larger(sum, one) : sum + one,
    );
  }

  one(usage: Usage, seen: UsageSeen | undefined, reports: UsageReports): bigint | null {
    const price = this.#priceOf(seen, reports);
    const { terms } = this;
    if (!price) return null;
    const c = {
      at: this.at,
      size: seen?.size ?? terms.size,
      quality: seen?.quality ?? terms.quality,
      facts: { ...terms.facts, ...seen?.facts },
    };
    if (seen?.tier !== undefined) return cost(usage, price, { ...c, tier: seen.tier });
    return cost(usage, price, { ...c, tier: terms.tier }) ?? cost(usage, price, c);
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
    const others: Price[] = [];
    for (const seen of reports.values()) {
      const price = this.#priceOf(seen, reports);
      if (price && price !== this.#call.info.price) others.push(price);
    }
    return others;
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
        costNano: this.one(seen.usage, seen, reports),
      };
    });
  }
}

const only = (reports: UsageReports): UsageSeen | undefined => reports.values().next().value;

export const larger = (a: bigint | null, b: bigint | null): bigint | null =>
  a === null || b === null ? (a ?? b) : a > b ? a : b;
