// Held prices that operators have accepted, as all gateways on a store share them. The list is made
// of numbered values of the store, which are never changed.
import type { HeldPrice } from "../../catalog/prices/price-book.ts";
import { priceHash } from "../../money/price.ts";
import type { Store } from "../../plugin/store/store.ts";

type SharedValues = NonNullable<Store["getOrCreateShared"]>;

interface PriceDecision {
  readonly provider: string;
  readonly model: string;
  /** Hash of the accepted price. */
  readonly price: string;
}
interface DecisionRecord {
  /** Unix milliseconds. */
  readonly at: number;
  readonly accepted: readonly PriceDecision[];
}

/** How long a decision applies to gateways that have not read the document yet, in milliseconds. */
const VALID_MS = 30 * 86_400_000;
const MISSING = new Error("there are no more decisions");

export class PriceDecisions {
  readonly #shared: SharedValues;
  readonly #key: string;
  readonly #records: DecisionRecord[] = [];

  /** `key`: public key of the publisher. */
  constructor(shared: SharedValues, key: string) {
    this.#shared = shared;
    this.#key = key;
  }

  /** Writes a decision that all gateways read. */
  async add(prices: readonly HeldPrice[], now: number): Promise<void> {
    const record: DecisionRecord = { at: now, accepted: prices.map(decisionOf) };
    const bytes = Buffer.from(JSON.stringify(record));
    for (;;) {
      await this.#readNew();
      const written = await this.#shared(this.#nextName(), async () => bytes);
      // Another gateway may have written the value at the same time.
      if (bytes.equals(written)) return;
    }
  }

  /** Returns whether an operator accepted a price, at any gateway. */
  async readAccepted(now: number): Promise<(held: HeldPrice) => boolean> {
    await this.#readNew();
    const accepted = new Set(
      this.#records
        .filter(({ at }) => at > now - VALID_MS)
        .flatMap((each) => each.accepted.map(idOf)),
    );
    return (held) => accepted.has(idOf(decisionOf(held)));
  }

  async #readNew(): Promise<void> {
    for (;;) {
      const bytes = await this.#shared(this.#nextName(), () => Promise.reject(MISSING)).catch(
        (error: unknown) => {
          if (error === MISSING) return undefined;
          throw error;
        },
      );
      if (!bytes) return;
      this.#records.push(JSON.parse(Buffer.from(bytes).toString()) as DecisionRecord);
    }
  }

  #nextName(): string {
    return `prices ${this.#key} ${this.#records.length}`;
  }
}

const decisionOf = ({ provider, model, price }: HeldPrice): PriceDecision => ({
  provider,
  model,
  price: priceHash(price),
});
const idOf = ({ provider, model, price }: PriceDecision): string =>
  JSON.stringify([provider, model, price]);
