// The price book: everything that this gateway has accepted from price documents. It is plain data
// that is never modified, so a file and a message to another process are copies of it.
//
// Invariants:
//   never backwards  a price that has begun is never changed or removed. A new price begins at the
//                    moment that the document states, and not before the document was accepted.
//   additive         a model or a fact that a newer document omits is kept.
//   held             a price that differs too much from the one before waits for the operator.
import type { Price } from "../../model/facts.ts";
import { fail } from "../../model/error.ts";
import { priceHash } from "../../money/price.ts";
import type { StatedFacts } from "../merge-facts.ts";
import { compareRates, type RateChange } from "./price-change.ts";
import {
  parseInstant,
  type FigureSources,
  type PriceDocument,
  type PublishedFacts,
} from "./price-document.ts";

/** A price and the moment from which it applies to new calls. */
export interface BookPrice {
  /** Unix milliseconds. */
  readonly from: number;
  readonly price: Price;
  /** Version of the document that stated it. */
  readonly version: number;
  readonly figures: FigureSources;
}

interface BookModel {
  readonly facts: PublishedFacts;
  /** In the order of their moments. */
  readonly prices: readonly BookPrice[];
}

/** A price that waits for the operator. */
export interface HeldPrice extends BookPrice {
  readonly provider: string;
  readonly model: string;
}

export interface PriceBook {
  /** Public key of the publisher. */
  readonly key: string;
  /** Version, hash, and ISO instant of the newest accepted document. */
  readonly version: number;
  readonly digest: string;
  readonly issued: string;
  readonly sources: PriceDocument["sources"];
  readonly models: { readonly [provider: string]: { readonly [model: string]: BookModel } };
  readonly held: readonly HeldPrice[];
}

/** A difference between the prices that apply and those of a document. */
export interface PriceChange {
  readonly provider: string;
  readonly model: string;
  /** `added`: no price was known. `changed`: it applies. `held`: it waits for the operator. */
  readonly effect: "added" | "changed" | "held";
  readonly from: number;
  readonly before: Price | undefined;
  readonly after: Price;
  readonly rates: readonly RateChange[];
}

export interface AdoptOptions {
  readonly now: number;
  /** Highest change of a rate that applies without approval, in percent. */
  readonly maxChangePercent: number;
  /** Returns the price of a model that the book has no price of. */
  readonly priceOf: (provider: string, model: string) => Price | undefined;
}

export const emptyBook = (key: string): PriceBook => ({
  key,
  version: 0,
  digest: "",
  issued: "",
  sources: {},
  models: {},
  held: [],
});

/**
 * Returns the book with a newer document. Throws, and the book stays as it is, if the document is
 * not newer. Returns the same book for the document that was accepted last.
 */
export function adoptDocument(
  book: PriceBook,
  document: PriceDocument,
  options: AdoptOptions,
): { readonly book: PriceBook; readonly changes: readonly PriceChange[] } {
  if (document.digest === book.digest) return { book, changes: [] };
  if (document.version <= book.version)
    return fail(
      "invalid",
      document.version === book.version
        ? `The price document was rejected: version ${document.version} was already accepted with other content.`
        : `The price document was rejected: it is version ${document.version}, and version ${book.version} was already accepted.`,
      { code: "prices_older" },
    );
  const models: Record<string, Record<string, BookModel>> = {};
  for (const [provider, known] of Object.entries(book.models)) models[provider] = { ...known };
  const held = Map.groupBy(book.held, idOf);
  const changes: PriceChange[] = [];
  for (const [provider, published] of document.providers)
    for (const [model, { facts, prices, figures }] of published) {
      const known = Object.hasOwn(models, provider) ? models[provider]![model] : undefined;
      const stated = prices.map(({ from, price }) => ({
        from: Math.max(from === undefined ? 0 : parseInstant(from)!, options.now),
        price,
        version: document.version,
        figures,
      }));
      const timeline = extendTimeline(
        known?.prices ?? [],
        stated,
        { provider, model },
        options,
        changes,
      );
      if (prices.length > 0)
        held.set(
          idOf({ provider, model }),
          timeline.held.map((each) => ({ ...each, provider, model })),
        );
      (models[provider] ??= {})[model] = {
        facts: mergePublished(known?.facts, facts),
        prices: dropOld(timeline.prices, options.now),
      };
    }
  const { version, digest, issued, sources } = document;
  return {
    book: {
      key: book.key,
      version,
      digest,
      issued,
      sources,
      models,
      held: [...held.values()].flat(),
    },
    changes,
  };
}

const idOf = ({ provider, model }: Pick<HeldPrice, "provider" | "model">): string =>
  `${provider}/${model}`;

/** How long a price that no longer applies is kept, in milliseconds. */
const KEEP_MS = 400 * 86_400_000;

/** Removes the prices that ended too long ago. */
function dropOld(prices: readonly BookPrice[], now: number): readonly BookPrice[] {
  const first = prices.findLastIndex(({ from }) => from <= now - KEEP_MS);
  return first > 0 ? prices.slice(first) : prices;
}

/** Facts that a newer document omits are kept. */
const mergePublished = (
  known: PublishedFacts | undefined,
  newer: PublishedFacts,
): PublishedFacts => ({
  ...known,
  ...newer,
  ...(known?.can && newer.can && { can: { ...known.can, ...newer.can } }),
  ...(known?.limits && newer.limits && { limits: { ...known.limits, ...newer.limits } }),
});

/** Adds the stated prices to a model's timeline. Prices that have begun stay. */
function extendTimeline(
  known: readonly BookPrice[],
  stated: readonly BookPrice[],
  id: { readonly provider: string; readonly model: string },
  { now, maxChangePercent, priceOf }: AdoptOptions,
  changes: PriceChange[],
): { readonly prices: readonly BookPrice[]; readonly held: readonly BookPrice[] } {
  if (stated.length === 0) return { prices: known, held: [] };
  const prices = known.filter(({ from }) => from <= now);
  const held: BookPrice[] = [];
  const announced = known.filter(({ from }) => from > now);
  // If several stated prices would apply now, the last one does.
  const current = stated.filter(({ from }) => from === now).slice(-1);
  for (const next of [...current, ...stated.filter(({ from }) => from > now)]) {
    const before = prices.at(-1)?.price ?? priceOf(id.provider, id.model);
    if (before && priceHash(before) === priceHash(next.price)) continue;
    // Accepted before, by the bound or by the operator.
    const isAccepted = ({ from, price }: BookPrice) =>
      from === next.from && priceHash(price) === priceHash(next.price);
    if (announced.some(isAccepted)) {
      prices.push(next);
      continue;
    }
    const rates = before ? compareRates(before, next.price, next.from) : [];
    const isHeld = rates.some(({ percent, removed }) => removed || percent > maxChangePercent);
    const effect = isHeld ? "held" : before ? "changed" : "added";
    changes.push({ ...id, effect, from: next.from, before, after: next.price, rates });
    (isHeld ? held : prices).push(next);
  }
  return { prices, held };
}

/**
 * Returns the book with held prices accepted, from now on or from their later moments.
 * @param wanted Whether a held price is accepted.
 */
export function acceptHeld(
  book: PriceBook,
  now: number,
  wanted: (held: HeldPrice) => boolean,
): PriceBook {
  const accepted = book.held.filter(wanted).toSorted((a, b) => a.from - b.from);
  const models: Record<string, Record<string, BookModel>> = {};
  for (const [provider, known] of Object.entries(book.models)) models[provider] = { ...known };
  for (const { provider, model, ...price } of accepted) {
    const known = models[provider]![model]!;
    const from = Math.max(price.from, now);
    const prices = [
      ...known.prices.filter((each) => each.from <= now || each.from < from),
      { ...price, from },
    ];
    models[provider]![model] = { ...known, prices };
  }
  return { ...book, models, held: book.held.filter((each) => !accepted.includes(each)) };
}

/** Returns the price of a model at a moment. */
export const bookPriceAt = (
  book: PriceBook,
  provider: string,
  model: string,
  now: number,
): BookPrice | undefined =>
  Object.hasOwn(book.models, provider)
    ? book.models[provider]![model]?.prices.findLast(({ from }) => from <= now)
    : undefined;

/** Returns the facts about a provider's models that apply at a moment. */
export function bookFactsAt(
  book: PriceBook,
  provider: string,
  now: number,
): readonly StatedFacts[] {
  if (!Object.hasOwn(book.models, provider)) return [];
  return Object.entries(book.models[provider]!).map(([model, { facts, prices }]) => {
    const price = prices.findLast(({ from }) => from <= now)?.price;
    return { ...facts, model, ...(price && { price }) };
  });
}

/** Returns the next moment at which a price begins. */
export function nextMoment(book: PriceBook, now: number): number | undefined {
  let next: number | undefined;
  for (const models of Object.values(book.models))
    for (const { prices } of Object.values(models))
      for (const { from } of prices) if (from > now && (next ?? from) >= from) next = from;
  return next;
}
