// The prices of the book that apply now, as the catalog reads them. Listeners are called when a new
// book replaces the old book, and when a price of the book begins.
import { MAX_TIMER_MS } from "../../lib/time/units.ts";
import { wallClock } from "../../lib/time/wall-clock.ts";
import type { StatedFacts } from "../merge-facts.ts";
import { bookFactsAt, nextMoment, type PriceBook } from "./price-book.ts";

/** Facts of the price feed about the models of one provider. */
export interface FeedFacts {
  /** ISO instant at which the newest document was issued. */
  readonly issued: string;
  readonly models: readonly StatedFacts[];
}

export class PriceOverlay implements Disposable {
  readonly #now: () => number;
  readonly #listeners = new Set<() => void>();
  #book: PriceBook | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(now: () => number = wallClock) {
    this.#now = now;
  }

  get book(): PriceBook | undefined {
    return this.#book;
  }

  /** Replaces the book. Undefined: there is no price feed. */
  set(book: PriceBook | undefined): void {
    this.#book = book;
    this.#announce();
  }

  /** Returns the facts about a provider's models. `provider`: name of the provider's plugin. */
  of(provider: string): FeedFacts | undefined {
    const book = this.#book;
    if (!book || !Object.hasOwn(book.models, provider)) return undefined;
    return { issued: book.issued, models: bookFactsAt(book, provider, this.#now()) };
  }

  /** Calls the listener after each change. Returns a function that unregisters it. */
  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer);
    this.#listeners.clear();
  }

  #announce(): void {
    this.#schedule();
    for (const listener of this.#listeners) listener();
  }

  #schedule(): void {
    clearTimeout(this.#timer);
    const next = this.#book && nextMoment(this.#book, this.#now());
    if (next === undefined) return;
    const waitMs = next - this.#now();
    this.#timer =
      waitMs > MAX_TIMER_MS
        ? setTimeout(() => this.#schedule(), MAX_TIMER_MS)
        : // Timers can fire up to 1 ms early.
          setTimeout(() => this.#announce(), waitMs + 1);
    this.#timer.unref();
  }
}
