// Reads the signed price document periodically, and keeps the book of accepted prices on disk. A
// document that is forged, older, malformed, or absurd changes nothing: the last book stays in use.
import { open, readFile, rename, mkdir } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import type { ModelInfo, Price } from "../../model/facts.ts";
import { fail, getFault } from "../../model/error.ts";
import type { Log } from "../../lib/log/log.ts";
import { MAX_TIMER_MS } from "../../lib/time/units.ts";
import { wallClock } from "../../lib/time/wall-clock.ts";
import {
  acceptHeld,
  adoptDocument,
  bookPriceAt,
  emptyBook,
  type HeldPrice,
  type PriceBook,
  type PriceChange,
} from "../../catalog/prices/price-book.ts";
import { MAX_DOCUMENT_BYTES, openDocument } from "../../catalog/prices/price-document.ts";
import type { PriceOverlay } from "../../catalog/prices/price-overlay.ts";
import type { GatewayConfig } from "../../config/gateway-config.ts";
import type { Store } from "../../plugin/store/store.ts";
import type { ProxyConfig } from "../../lib/net/http-proxy.ts";
import { refreshDelay } from "../../catalog/list-refresher.ts";
import { PriceDecisions } from "./price-decisions.ts";

/** State of the price feed, for operators. Times are ISO instants. */
export interface PriceFeedStatus {
  readonly from: string;
  /** Version and issue time of the newest accepted document. Undefined if none was accepted. */
  readonly version: number | undefined;
  readonly issued: string | undefined;
  /** When the source was last read successfully in this process. */
  readonly checkedAt: string | undefined;
  /** Why the last read failed or its document was rejected. */
  readonly lastError: string | undefined;
  /** Number of prices that wait for approval. */
  readonly held: number;
}

/** Changes that the next document would make. */
export interface PriceFeedPreview {
  readonly version: number;
  readonly changes: readonly PriceChange[];
}

interface PriceFeedOptions {
  readonly overlay: PriceOverlay;
  readonly log: Pick<Log, "info" | "warn">;
  /** Directory of the book. */
  readonly dir: string;
  readonly proxy: ProxyConfig | undefined;
  /** Shared values of a store with several gateways, through which they share decisions. */
  readonly shared?: Store["getOrCreateShared"];
  readonly now?: () => number;
}

type PriceSettings = NonNullable<GatewayConfig["prices"]>;

/** The settings, and the built-in prices that a document is compared with. */
type PriceFeedConfig = Pick<GatewayConfig, "prices" | "file" | "providers">;

/**
 * Returns the built-in price of a model, by the name of the provider's plugin. The price may be that
 * of another model.
 */
export function builtInPrice(
  { providers }: Pick<GatewayConfig, "providers">,
  plugin: string,
  model: string,
): Price | undefined {
  const models =
    [...providers.values()].find(({ definition }) => definition.name === plugin)?.definition.facts
      ?.models ?? [];
  let info = models.find((each) => each.model === model);
  for (let hop = 0; info && info.price === undefined && hop < MAX_PRICE_REFERENCES; hop++) {
    const { pricedAs }: ModelInfo = info;
    info = models.find((each) => each.model === pricedAs);
  }
  return info?.price;
}

/** Returns the price of a model without the operator's own settings. */
export const priceInForce = (
  book: PriceBook | undefined,
  config: Pick<GatewayConfig, "providers">,
  plugin: string,
  model: string,
): Price | undefined =>
  (book && bookPriceAt(book, plugin, model, wallClock())?.price) ??
  builtInPrice(config, plugin, model);

const FORMAT_VERSION = 1;
const MAX_PRICE_REFERENCES = 4;
const FETCH_TIMEOUT_MS = 60_000;
/** How soon a gateway applies the decision of an operator at another gateway. */
const DECISIONS_EVERY_MS = 60_000;

export class PriceFeed implements Disposable {
  readonly #options: PriceFeedOptions;
  readonly #now: () => number;
  readonly #closed = new AbortController();
  #config: PriceFeedConfig | undefined;
  #timer: NodeJS.Timeout | undefined;
  #decisions: PriceDecisions | undefined;
  #decisionTimer: NodeJS.Timeout | undefined;
  /** Reads and changes of the book run one after the other. */
  #tail: Promise<unknown> = Promise.resolve();
  #failures = 0;
  #checkedAt: number | undefined;
  #lastError: string | undefined;

  constructor(options: PriceFeedOptions) {
    this.#options = options;
    this.#now = options.now ?? wallClock;
  }

  /** Follows the source of this config from now on. Resolves when the saved book is in use. */
  configure(config: PriceFeedConfig): Promise<void> {
    const before = this.#config?.prices;
    const isUnchanged = JSON.stringify(before) === JSON.stringify(config.prices);
    // A read that runs compares the settings by identity, and schedules the next read.
    this.#config = isUnchanged ? { ...config, prices: before } : config;
    if (isUnchanged) return Promise.resolve();
    return this.#inTurn(async () => {
      clearTimeout(this.#timer);
      this.#lastError = undefined;
      const key = config.prices?.key;
      const { overlay, dir, log } = this.#options;
      if (overlay.book?.key !== key)
        overlay.set(key === undefined ? undefined : await readPriceBook(dir, key, log));
      this.#shareDecisions(key);
      if (key !== undefined) this.#schedule(0);
    });
  }

  status(): PriceFeedStatus | undefined {
    const prices = this.#config?.prices;
    if (!prices) return undefined;
    const book = this.#options.overlay.book;
    return {
      from: prices.from!,
      version: book && book.version > 0 ? book.version : undefined,
      issued: book && book.version > 0 ? book.issued : undefined,
      checkedAt:
        this.#checkedAt === undefined ? undefined : new Date(this.#checkedAt).toISOString(),
      lastError: this.#lastError,
      held: this.held.length,
    };
  }

  /** Prices that wait for approval. */
  get held(): readonly HeldPrice[] {
    return this.#options.overlay.book?.held ?? [];
  }

  /** Reads the source now. Rejects if it cannot be read or its document is rejected. */
  refreshNow(): Promise<void> {
    return this.#inTurn(() => this.#refresh());
  }

  /**
   * Returns the changes that the source's document would make. Nothing changes. Undefined: there is
   * no price feed.
   */
  async preview(): Promise<PriceFeedPreview | undefined> {
    const config = this.#config;
    if (!config?.prices) return undefined;
    const { book, changes } = await this.#read(config, config.prices);
    return { version: book.version, changes };
  }

  /** Accepts held prices. Returns those that were accepted. */
  accept(wanted: (held: HeldPrice) => boolean): Promise<readonly HeldPrice[]> {
    return this.#inTurn(async () => {
      const book = this.#options.overlay.book;
      const accepted = book?.held.filter(wanted) ?? [];
      if (accepted.length === 0) return accepted;
      await this.#decisions?.add(accepted, this.#now());
      await this.#use(acceptHeld(book!, this.#now(), wanted));
      return accepted;
    });
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer);
    clearInterval(this.#decisionTimer);
    this.#closed.abort();
  }

  #shareDecisions(key: string | undefined): void {
    clearInterval(this.#decisionTimer);
    const { shared, log } = this.#options;
    this.#decisions = key === undefined || !shared ? undefined : new PriceDecisions(shared, key);
    if (!this.#decisions) return;
    this.#decisionTimer = setInterval(
      () =>
        void this.#inTurn(() => this.#applyDecisions()).catch((err: unknown) =>
          log.warn({ err }, "accepted prices of other gateways not readable"),
        ),
      DECISIONS_EVERY_MS,
    ).unref();
  }

  /** Accepts the held prices that an operator accepted at another gateway. */
  async #applyDecisions(): Promise<void> {
    if (!this.#decisions || this.held.length === 0) return;
    const now = this.#now();
    const wanted = await this.#decisions.readAccepted(now);
    const accepted = this.held.filter(wanted).length;
    if (accepted === 0) return;
    await this.#use(acceptHeld(this.#options.overlay.book!, now, wanted));
    this.#options.log.info({ accepted }, "prices accepted at another gateway");
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#tail.then(work);
    this.#tail = done.catch(() => {});
    return done;
  }

  #schedule(ms: number): void {
    clearTimeout(this.#timer);
    if (this.#closed.signal.aborted) return;
    this.#timer = setTimeout(() => void this.refreshNow().catch(() => {}), ms).unref();
  }

  async #refresh(): Promise<void> {
    const { log } = this.#options;
    const config = this.#config;
    const settings = config?.prices;
    if (!config || !settings) return;
    try {
      const before = this.#options.overlay.book;
      const { book, changes } = await this.#read(config, settings);
      this.#checkedAt = this.#now();
      if (book !== before) {
        await this.#use(book);
        const count = (effect: PriceChange["effect"]) =>
          changes.filter((change) => change.effect === effect).length;
        log.info(
          { version: book.version, added: count("added"), changed: count("changed") },
          "price document accepted",
        );
        if (count("held") > 0)
          log.warn({ version: book.version, held: count("held") }, "prices held for approval");
      }
      await this.#applyDecisions();
      this.#failures = 0;
      this.#lastError = undefined;
    } catch (error) {
      if (this.#closed.signal.aborted) return;
      this.#failures++;
      this.#lastError = getFault(error)?.message ?? (error as Error).message;
      log.warn({ from: settings.from, reason: this.#lastError }, "price document not accepted");
      throw error;
    } finally {
      if (settings === this.#config?.prices)
        this.#schedule(
          Math.min(refreshDelay(this.#failures, settings.everyMs, Math.random()), MAX_TIMER_MS),
        );
    }
  }

  /** Reads the document and adds it to the book, without using the result. */
  async #read(config: PriceFeedConfig, settings: PriceSettings) {
    const bytes = await this.#fetch(settings.from!, config.file);
    const now = this.#now();
    return adoptDocument(
      this.#options.overlay.book ?? emptyBook(settings.key!),
      openDocument(bytes, settings.key!, now),
      {
        now,
        maxChangePercent: settings.maxChange,
        priceOf: (plugin, model) => builtInPrice(config, plugin, model),
      },
    );
  }

  async #fetch(from: string, file: string): Promise<Buffer> {
    if (!/^https?:\/\//.test(from)) {
      const handle = await open(resolve(dirname(file), from)).catch(
        (error: NodeJS.ErrnoException) =>
          fail("unavailable", `Cannot read the price document ${from}: ${error.code}.`, {
            code: "prices_unreadable",
            cause: error,
          }),
      );
      await using reader = handle;
      if ((await reader.stat()).size > MAX_DOCUMENT_BYTES)
        fail("invalid", `The price document ${from} is too large.`, { code: "prices_malformed" });
      return await reader.readFile();
    }
    // Loaded on demand, because the module loads slowly and most gateways have no price feed.
    const { createProviderClient } = await import("../plugin-host/provider-client.ts");
    const { fetch } = createProviderClient({
      reach: undefined,
      dispatcher: undefined,
      credential: { name: "", fields: {}, weight: 1, models: undefined, zdr: undefined },
      allowedOrigins: new Set([new URL(from).origin]),
      proxy: this.#options.proxy,
      bound: "modelList",
      signal: AbortSignal.any([this.#closed.signal, AbortSignal.timeout(FETCH_TIMEOUT_MS)]),
    });
    const answer = await fetch(from);
    if (answer.status !== 200) {
      await answer.body?.cancel();
      fail("unavailable", `The price feed returned status ${answer.status}.`, {
        code: "prices_unreadable",
      });
    }
    return Buffer.from(await answer.arrayBuffer());
  }

  /** The book is written before it is used, so that a restart never returns to older prices. */
  async #use(book: PriceBook): Promise<void> {
    await mkdir(this.#options.dir, { recursive: true, mode: 0o700 });
    const path = pathOf(this.#options.dir, book.key);
    const half = `${path}.${process.pid}.tmp`;
    const handle = await open(half, "w", 0o600);
    try {
      await handle.writeFile(JSON.stringify({ format: FORMAT_VERSION, book }));
      await handle.sync();
    } finally {
      await handle.close();
    }
    await rename(half, path);
    this.#options.overlay.set(book);
  }
}

/** Returns the saved book of a publisher, or an empty one. */
export async function readPriceBook(
  dir: string,
  key: string,
  log: Pick<Log, "warn">,
): Promise<PriceBook> {
  try {
    const saved = JSON.parse(await readFile(pathOf(dir, key), "utf8")) as {
      readonly format?: number;
      readonly book?: PriceBook;
    };
    if (saved.format === FORMAT_VERSION && saved.book?.key === key) return saved.book;
    throw new Error("it has another format");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT")
      log.warn({ reason: (error as Error).message }, "saved prices not readable");
    return emptyBook(key);
  }
}

/** Each publisher has a separate book, because versions of two publishers are not comparable. */
const pathOf = (dir: string, key: string): string =>
  join(dir, `${Buffer.from(key.slice("ed25519:".length), "base64").toString("hex")}.json`);
