// Commands of the price feed: what the next price document would change, and the acceptance of
// prices that wait for the operator.
import { wallClock } from "../../lib/time/wall-clock.ts";
import type { HeldPrice, PriceChange } from "../../catalog/prices/price-book.ts";
import { compareRates } from "../../catalog/prices/price-change.ts";
import type { RateChange } from "../../catalog/prices/price-change.ts";
import type { Price } from "../../model/facts.ts";
import { formatDecimal, nanoToDecimal } from "../../money/decimal.ts";
import { calculateCost } from "../../money/price.ts";
import type { LedgerEntry } from "../../plugin/store/ledger-entry.ts";
import type { Store } from "../../plugin/store/store.ts";
import type { PriceFeed, PriceFeedStatus } from "../../runtime/services/price-feed.ts";
import { withInputChecks } from "../dispatch/command-input.ts";

/** A changed rate, in US dollars per unit. */
export interface ListedRate {
  readonly figure: string;
  readonly beforeUsd: string | null;
  readonly afterUsd: string | null;
  /** Null if the rate appeared, disappeared, or was zero before. */
  readonly percent: number | null;
}

/** A price that the next document adds or changes, or that waits for the operator. */
export interface ListedChange {
  /** Model by the name of the provider's plugin, such as "openai/gpt-6". */
  readonly model: string;
  readonly effect: PriceChange["effect"];
  /** ISO instant from which the price applies. */
  readonly from: string;
  readonly rates: readonly ListedRate[];
  /** Calls of the last 30 days at the price of the time and at this price. */
  readonly lastMonth: {
    readonly calls: number;
    readonly usd: string;
    readonly newUsd: string;
    /** Calls that had no price. They are not part of `usd`. */
    readonly unpriced: number;
  };
}

/** Result of `models.diff`. */
export interface PriceDiff {
  /** Null if gateway.yaml sets no price feed. */
  readonly feed: PriceFeedStatus | null;
  /** Version of the document that was read now. */
  readonly version: number | null;
  readonly changes: readonly ListedChange[];
  /** Prices of accepted documents that wait for the operator. */
  readonly held: readonly ListedChange[];
  /** Whether a model has more calls than were counted. */
  readonly truncated: boolean;
}

/** Result of `models.accept`. */
export interface AcceptedPrices {
  readonly accepted: readonly { readonly model: string; readonly version: number }[];
}

interface PriceCommandsOptions {
  readonly feed: PriceFeed;
  readonly store: Pick<Store, "listEntries" | "sumEntries">;
  /** Returns the names in gateway.yaml of the providers that use a plugin. */
  readonly mountedAs: (plugin: string) => readonly string[];
  /** Returns the price of a model that applies now, by the name of the provider's plugin. */
  readonly currentPrice: (plugin: string, model: string) => Price | undefined;
}

const MONTH_MS = 30 * 86_400_000;
const PAGE = 500;
/** Maximum number of rows that are priced again, over all models. */
const MAX_ROWS = 50_000;

export function createPriceCommands(options: PriceCommandsOptions, now = wallClock) {
  const { feed } = options;
  return withInputChecks({
    "models.diff": async (): Promise<PriceDiff> => {
      const preview = await feed.preview();
      if (!preview) return { feed: null, version: null, changes: [], held: [], truncated: false };
      const { version, changes } = preview;
      const replay = new Replay(options, now());
      return {
        feed: feed.status()!,
        version,
        changes: await listAll(changes, replay),
        held: await listAll(
          feed.held.map((each) => describeHeld(each, options, now())),
          replay,
        ),
        truncated: replay.isTruncated,
      };
    },
    "models.accept": async ({ version, model }): Promise<AcceptedPrices> => {
      const accepted = await feed.accept(
        (held) => held.version === version && (model === undefined || model === idOf(held)),
      );
      return { accepted: accepted.map((each) => ({ model: idOf(each), version: each.version })) };
    },
  });
}

const idOf = ({ provider, model }: Pick<HeldPrice, "provider" | "model">): string =>
  `${provider}/${model}`;

function describeHeld(
  { provider, model, from, price }: HeldPrice,
  { currentPrice }: PriceCommandsOptions,
  now: number,
): PriceChange {
  const before = currentPrice(provider, model);
  const rates = before ? compareRates(before, price, now) : [];
  return {
    provider,
    model,
    effect: "held",
    from: Math.max(from, now),
    before,
    after: price,
    rates,
  };
}

async function listAll(
  changes: readonly PriceChange[],
  replay: Replay,
): Promise<readonly ListedChange[]> {
  const listed: ListedChange[] = [];
  for (const change of changes)
    listed.push({
      model: idOf(change),
      effect: change.effect,
      from: new Date(change.from).toISOString(),
      rates: change.rates.map(listRate),
      lastMonth: await replay.run(change),
    });
  return listed;
}

const listRate = ({ figure, before, after, percent }: RateChange): ListedRate => ({
  figure,
  beforeUsd: before === undefined ? null : formatDecimal(before, 12),
  afterUsd: after === undefined ? null : formatDecimal(after, 12),
  percent: before === undefined || after === undefined || percent === Infinity ? null : percent,
});

/** Prices the calls of the last 30 days again. */
class Replay {
  readonly #options: PriceCommandsOptions;
  readonly #from: number;
  #rows = 0;
  /** Models with calls, such as "openai/gpt-6". Most changes of a document concern no call. */
  #called: Promise<ReadonlySet<string>> | undefined;
  isTruncated = false;

  constructor(options: PriceCommandsOptions, now: number) {
    this.#options = options;
    this.#from = now - MONTH_MS;
  }

  async run(change: PriceChange): Promise<ListedChange["lastMonth"]> {
    let [calls, unpriced, usd, newUsd] = [0, 0, 0n, 0n];
    const called = await (this.#called ??= this.#listCalled());
    for (const provider of this.#options.mountedAs(change.provider)) {
      if (!called.has(`${provider}/${change.model}`)) continue;
      for await (const row of this.#rowsOf(provider, change.model)) {
        const cost = costAgain(row, change);
        if (cost === undefined) continue;
        calls++;
        if (row.costNano === null) unpriced++;
        usd += row.costNano ?? 0n;
        newUsd += cost;
      }
    }
    return { calls, unpriced, usd: nanoToDecimal(usd), newUsd: nanoToDecimal(newUsd) };
  }

  async #listCalled(): Promise<ReadonlySet<string>> {
    const query = { from: this.#from, by: ["model"] } as const;
    const totals = await this.#options.store.sumEntries(query);
    return new Set(totals.map(({ by }) => by["model"]!));
  }

  async *#rowsOf(provider: string, model: string): AsyncGenerator<LedgerEntry, void> {
    let after: string | undefined;
    do {
      const query = { provider, model, from: this.#from };
      const page = await this.#options.store.listEntries(query, { after, limit: PAGE });
      for (const row of page.items) if (row.kind === "settle" && row.state !== "void") yield row;
      this.#rows += page.items.length;
      after = page.next;
      if (after !== undefined && this.#rows >= MAX_ROWS) this.isTruncated = true;
    } while (after !== undefined && this.#rows < MAX_ROWS);
  }
}

/**
 * Returns the cost of a call at the new price. Rows do not record every term of a price, such as
 * the tier. If the recorded cost is not that of the plain terms, the new cost is scaled by the
 * ratio of both prices. Undefined for a bill at several prices, which does not change as a whole.
 */
function costAgain(row: LedgerEntry, { before, after }: PriceChange): bigint | undefined {
  if (row.parts) return undefined;
  const plain = calculateCost(row.usage, after, { at: row.at });
  if (plain === null) return undefined;
  const old = before && calculateCost(row.usage, before, { at: row.at });
  if (
    row.costNano === null ||
    old === undefined ||
    old === null ||
    old === 0n ||
    old === row.costNano
  )
    return plain;
  return (row.costNano * plain) / old;
}
