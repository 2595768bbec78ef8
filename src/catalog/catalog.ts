// The catalog: the models that currently exist and their metadata, with the source and age of each
// fact. May import lib, model, and money. It makes no calls: `list-refresher.ts` delivers live
// lists, and other facts are passed in as data. A lookup is a read from a map. Derived data is
// computed when a source changes, not during a request.
import { wallClock } from "../lib/time/wall-clock.ts";
import { chatOperation } from "../model/operations/chat-operation.ts";
import { BUILT_IN_OPERATIONS } from "../model/operations/built-in-operations.ts";
import type { OperationSpec } from "../model/operations/operation-spec.ts";
import type { EffectivePolicy, Facts, ModelInfo, Privacy } from "../model/facts.ts";
import type { Operation } from "../model/request.ts";
import type { Opt } from "../model/values.ts";
import { createInMemoryModelLists, type ModelLists } from "./model-lists.ts";
import { mergeFacts, type FactLayer, type StatedFacts, type FactSources } from "./merge-facts.ts";
import type { FeedFacts, PriceOverlay } from "./prices/price-overlay.ts";
import { suggestNames } from "./model-names.ts";
import { effectivePolicy, satisfies } from "./data-policy.ts";
import { isDeepStrictEqual } from "node:util";

/** Facts about one provider in the configuration. */
export interface ProviderFacts {
  /**
   * The operator's facts by upstream model name. They override all other sources. An entry with
   * `operation` asserts that the model exists.
   */
  operator?: Opt<ReadonlyMap<string, StatedFacts>>;
  /** Facts that ship with the provider's code. */
  shipped?: Opt<Facts>;
  /** Name of the provider's plugin, by which the price feed refers to it. */
  plugin?: Opt<string>;
  /**
   * Whether the provider can be queried for its models. If false, the known models are all existing
   * models.
   */
  hasLiveList?: Opt<boolean>;
}

export interface CatalogEntry {
  readonly info: ModelInfo;
  /**
   * Whether the model is known to exist. A request for an unlisted chat model is forwarded, one for
   * an unlisted image model is not.
   */
  readonly listed: boolean;
  readonly sources: FactSources;
}

/** Filter for listings. */
export interface CatalogQuery {
  operation?: Opt<Operation>;
  provider?: Opt<string>;
  privacy?: Opt<Privacy>;
  isAllowed?: Opt<(id: string) => boolean>;
}

export interface Catalog {
  /**
   * All operations that models may have. A model with any other operation is listed, but no
   * frontend serves it.
   */
  readonly operations: ReadonlyMap<string, OperationSpec>;
  /** Increases whenever the catalog changes. */
  readonly version: number;
  find(provider: string, model: string): CatalogEntry;
  /** Returns the current entries of one provider. A later update creates a new map. */
  entriesOf(provider: string): ReadonlyMap<string, CatalogEntry>;
  /**
   * Returns all existing models. Aliases come first, then models by provider in configuration order
   * and by name.
   */
  list(of?: CatalogQuery): readonly Listing[];
  listing(id: string): Listing | undefined;
  /** Returns up to three known names that are similar to an unknown name, nearest first. */
  suggest(id: string, kind?: Operation, may?: (id: string) => boolean): readonly string[];
}

export interface CatalogSources {
  providers?: Opt<ReadonlyMap<string, ProviderFacts>>;
  /** Aliases with their candidates. Names with a pattern are ignored. */
  aliases?: Opt<ReadonlyMap<string, readonly string[]>>;
  lists?: Opt<ModelLists>;
  /** Facts of the price feed that apply now. */
  feed?: Opt<Pick<PriceOverlay, "of" | "onChange">>;
  /** All operations that are mounted or built in. */
  operations?: Opt<ReadonlyMap<string, OperationSpec>>;
  policyOf?: Opt<(provider: string, info: ModelInfo) => EffectivePolicy>;
  now?: Opt<() => number>;
}

/** Data policies depend on the date, so results derived from them are cached only for this time. */
const CACHE_TTL_MS = 60_000;
const MAX_PRICE_REFERENCES = 4;
const NO_SOURCES: FactSources = {};
const NO_ENTRIES: ReadonlyMap<string, CatalogEntry> = new Map();

/**
 * Creates the catalog of a config generation. The catalog is updated from the live lists until it
 * is disposed.
 */
export function createCatalog(parts: CatalogSources = {}): Catalog & Disposable {
  const {
    providers = new Map<string, ProviderFacts>(),
    aliases = new Map<string, readonly string[]>(),
    lists = createInMemoryModelLists(),
    feed,
    operations = BUILT_IN_OPERATIONS,
    now = wallClock,
    policyOf = (_: string, info: ModelInfo) =>
      effectivePolicy({ provider: undefined, model: info.dataPolicy, trusted: true, now: now() }),
  } = parts;
  const stated = new Map<string, Map<string, CatalogEntry>>();
  const known = new Map<string, ReadonlyMap<string, CatalogEntry>>();
  let version = 0;
  let listings: ReadonlyMap<string, Listing> | undefined;
  let keptAt = 0;

  const work = (name: string): void => {
    const stock = providers.get(name);
    if (!stock) return;
    const fed = stock.plugin === undefined ? undefined : feed?.of(stock.plugin);
    stated.set(name, collectEntries(stock, lists.of(name), fed, operations));
    // Prices can refer to other providers' models, so models with a reference are recomputed.
    for (const [other, models] of stated)
      if (other === name || [...models.values()].some((f) => f.info.pricedAs !== undefined))
        known.set(other, withReferencedPrices(other, stated));
    listings = undefined;
    version++;
  };
  for (const name of providers.keys()) work(name);
  const stopLists = lists.onChange(work);
  const stopFeed = feed?.onChange(() => {
    for (const name of providers.keys()) work(name);
  });

  const all = (): ReadonlyMap<string, Listing> => {
    const age = now() - keptAt;
    if (listings && age >= 0 && age < CACHE_TTL_MS) return listings;
    const found = new Map<string, Listing>();
    for (const [provider, models] of known)
      for (const { info, listed } of [...models.values()].toSorted(compareByModel))
        if (listed) {
          const id = `${provider}/${info.model}`;
          found.set(id, { ...info, id, provider, policy: policyOf(provider, info) });
        }
    const named = aliasListings(aliases, found);
    for (const id of named.keys()) found.delete(id);
    keptAt = now();
    return (listings = new Map([...named, ...found]));
  };

  return {
    get version() {
      return version;
    },
    operations,
    find: (provider, model) =>
      known.get(provider)?.get(model) ?? {
        info: { model, operation: chatOperation.name },
        listed: false,
        sources: NO_SOURCES,
      },
    entriesOf: (provider) => known.get(provider) ?? NO_ENTRIES,
    list({ operation, provider, privacy = "off", isAllowed } = {}) {
      return [...all().values()].filter(
        (l) =>
          (operation === undefined || l.operation === operation) &&
          (provider === undefined || l.provider === provider) &&
          (isAllowed === undefined || isAllowed(l.id)) &&
          satisfies(privacy, l.policy),
      );
    },
    listing: (id) => all().get(id),
    suggest(id, kind, may) {
      const ids = [...all().values()]
        .filter(
          (l) => (kind === undefined || l.operation === kind) && (may === undefined || may(l.id)),
        )
        .map((l) => l.id);
      return suggestNames(id, ids);
    },
    [Symbol.dispose]() {
      stopLists();
      stopFeed?.();
    },
  };
}

const compareByModel = (a: CatalogEntry, b: CatalogEntry): number =>
  a.info.model < b.info.model ? -1 : 1;

/** Merges all facts about one provider's models. */
function collectEntries(
  facts: ProviderFacts,
  liveLists: ReturnType<ModelLists["of"]>,
  fed: FeedFacts | undefined,
  operations: ReadonlyMap<string, OperationSpec>,
): Map<string, CatalogEntry> {
  const { operator, shipped, hasLiveList = false } = facts;
  const layers = new Map<string, FactLayer[]>();
  const live = new Set<string>();
  const addLayer = (model: string, layer: FactLayer) => {
    const modelLayers = layers.get(model);
    if (modelLayers) modelLayers.push(layer);
    else layers.set(model, [layer]);
  };
  for (const [model, operatorFacts] of operator ?? [])
    addLayer(model, { from: "operator", facts: operatorFacts });
  for (const { credential, at: ms, models } of liveLists ?? []) {
    const at = new Date(ms).toISOString();
    for (const liveFacts of models) {
      live.add(liveFacts.model);
      addLayer(liveFacts.model, { from: "live", at, credential, facts: liveFacts });
    }
  }
  const addShipped = () => {
    for (const shippedFacts of shipped?.models ?? [])
      addLayer(shippedFacts.model, { from: "shipped", at: shipped!.asOf, facts: shippedFacts });
  };
  const addFed = () => {
    for (const fedFacts of fed?.models ?? [])
      addLayer(fedFacts.model!, { from: "feed", at: fed!.issued, facts: fedFacts });
  };
  // A release that is newer than the feed's document has the newer facts.
  const order =
    fed && shipped && fed.issued.slice(0, 10) < shipped.asOf
      ? [addShipped, addFed]
      : [addFed, addShipped];
  for (const add of order) add();
  const found = new Map<string, CatalogEntry>();
  for (const [model, modelLayers] of layers) {
    const { info, sources } = mergeFacts(model, modelLayers);
    const named = operator?.get(model)?.operation !== undefined;
    const ships = modelLayers.some((l) => l.from === "shipped" || l.from === "feed");
    // Until a live list has arrived, shipped facts are used instead. This rule does not apply to
    // operations whose models must be in a list.
    const waits = hasLiveList && (operations.get(info.operation)?.requiresCatalogEntry ?? true);
    const assumed = liveLists === undefined && ships && !waits;
    found.set(model, { info, sources, listed: named || live.has(model) || assumed });
  }
  return found;
}

/** Returns the provider's entries with referenced prices resolved. */
function withReferencedPrices(
  provider: string,
  stated: ReadonlyMap<string, ReadonlyMap<string, CatalogEntry>>,
): ReadonlyMap<string, CatalogEntry> {
  const models = stated.get(provider)!;
  const at = (from: string, id: string): [string, CatalogEntry] | undefined => {
    const own = stated.get(from)?.get(id);
    if (own) return [from, own];
    const slash = id.indexOf("/");
    const other = stated.get(id.slice(0, slash))?.get(id.slice(slash + 1));
    return other && [id.slice(0, slash), other];
  };
  const resolved = new Map<string, CatalogEntry>();
  for (const [model, found] of models) {
    let from = provider;
    let lender: CatalogEntry | undefined = found;
    for (
      let hop = 0;
      lender && lender.info.price === undefined && hop < MAX_PRICE_REFERENCES;
      hop++
    ) {
      const { pricedAs }: ModelInfo = lender.info;
      const next: [string, CatalogEntry] | undefined =
        pricedAs === undefined ? undefined : at(from, pricedAs);
      lender = next?.[1];
      from = next?.[0] ?? from;
    }
    const price = lender?.info.price;
    resolved.set(
      model,
      lender === found || price === undefined
        ? found
        : {
            ...found,
            info: { ...found.info, price },
            sources: {
              ...found.sources,
              price: { ...lender!.sources["price"]!, pricedAs: `${from}/${lender!.info.model}` },
            },
          },
    );
  }
  return resolved;
}

const MAX_DEPTH = 16;

/**
 * Lists each alias as a separate model. An alias has the metadata on which all its models agree,
 * because any of them may respond. Its data policy is the policy of its first model, which is tried
 * first.
 */
function aliasListings(
  aliases: ReadonlyMap<string, readonly string[]>,
  listings: ReadonlyMap<string, Listing>,
): ReadonlyMap<string, Listing> {
  const found = new Map<string, Listing>();
  for (const [name, candidates] of aliases) {
    if (name.includes("*")) continue;
    const [first, ...others] = resolveCandidates(candidates, aliases, listings, 0);
    if (!first) continue;
    const { id: _, provider, policy, ...facts } = first;
    const agreed = Object.entries(facts).filter(([field, value]) =>
      others.every((o) => isDeepStrictEqual(o[field as keyof ModelInfo], value)),
    );
    const info = { model: name, ...Object.fromEntries(agreed), operation: first.operation };
    found.set(name, { ...info, id: name, provider, policy });
  }
  return found;
}

function resolveCandidates(
  candidates: readonly string[],
  aliases: ReadonlyMap<string, readonly string[]>,
  listings: ReadonlyMap<string, Listing>,
  depth: number,
): Listing[] {
  if (depth > MAX_DEPTH) return [];
  return candidates.flatMap((id) => {
    const next = aliases.get(id);
    const listing = listings.get(id);
    // An alias may have the same name as its target model.
    if (listing) return [listing];
    return next ? resolveCandidates(next, aliases, listings, depth + 1) : [];
  });
}

/** A model that exists, as shown in model lists. */
export interface Listing extends ModelInfo {
  /** Provider-qualified name, or an alias. */
  id: string;
  provider: string;
  policy: EffectivePolicy;
}
