// What counts cost: a call's reports, each at the price of its own model, under the terms that upstream reports or, where
// it reports none, those that were asked for.
import { cost, priceHash } from "../money/price.ts";
import type { UsageSeen } from "../model/event.ts";
import type { Price } from "../model/facts.ts";
import type { Usage } from "../model/usage.ts";
import type { Part } from "../plugin/store.ts";
import type { Attempt } from "./call.ts";
import { priceOf, type Shelf } from "./parts.ts";
import type { Terms } from "./terms.ts";

export type Reports = ReadonlyMap<string, UsageSeen>;

export class Pricing {
  readonly #call: Attempt;
  /** What the reserve was priced with: the bill is priced with the same. */
  terms: Terms = {};
  at = 0;
  shelf: Shelf = new Map();

  constructor(call: Attempt) {
    this.#call = call;
  }

  /** Each report as it stands; an estimate, which belongs to no report, at the dearest of them. */
  cost(usage: Usage, reports: Reports, estimated: boolean): bigint | null {
    if (reports.size === 0) return this.one(usage, undefined, reports);
    const costs = [...reports.values()].map((seen) =>
      this.one(reports.size === 1 || estimated ? usage : seen.usage, seen, reports),
    );
    return costs.reduce((sum, one) =>
      sum === null || one === null ? null : estimated ? larger(sum, one) : sum + one,
    );
  }

  one(usage: Usage, seen: UsageSeen | undefined, reports: Reports): bigint | null {
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

  #priceOf(seen: UsageSeen | undefined, reports: Reports): Price | undefined {
    const { model, info } = this.#call;
    const alone = reports.size < 2;
    return priceOf(seen?.model, { model, price: info.price, shelf: this.shelf, alone });
  }

  /** Beside the one that the reserve pinned. */
  others(reports: Reports): readonly Price[] {
    const used = [...reports.values()].map((seen) => this.#priceOf(seen, reports));
    return used.filter(
      (price): price is Price => price !== undefined && price !== this.#call.info.price,
    );
  }

  /** A bill in parts keeps its parts, and so does one that another model's price was paid for. */
  parts(reports: Reports): readonly Part[] | undefined {
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

export const larger = (a: bigint | null, b: bigint | null): bigint | null =>
  a === null || b === null ? (a ?? b) : a > b ? a : b;
