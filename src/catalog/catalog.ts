// The catalog: which models exist right now, and what is known of each, with the source of it and since when.
// May import: lib, model, money. Makes no call: lists are brought by refresh.ts, facts are handed in as data. A question
// is a Map lookup; whatever changes is worked out when it changes, off the path of any request.
import { wallClock } from "../lib/time/wall-clock.ts";
import { chatOperation } from "../model/operations/chat-operation.ts";
import { BUILT_IN_OPERATIONS } from "../model/operations/built-in-operations.ts";
import type { OperationSpec } from "../model/operations/operation-spec.ts";
import type { EffectivePolicy, Facts, ModelInfo, Privacy } from "../model/facts.ts";
import type { Operation } from "../model/request.ts";
import type { Opt } from "../model/values.ts";
import { aliasListings } from "./alias-listings.ts";
import type { Listing } from "./listing.ts";
import { createInMemoryModelLists, type ModelLists } from "./model-lists.ts";
import { mergeFacts, type FactLayer, type StatedFacts, type FactSources } from "./merge-facts.ts";
import { suggestNames } from "./suggest-names.ts";
import { effectivePolicy, satisfies } from "./data-policy.ts";

/** One provider, as a config mounts it. */
export interface ProviderFacts {
  /** The operator's own facts, by upstream model name: they win. One that states a `kind` says that the model exists. */
  operator?: Opt<ReadonlyMap<string, StatedFacts>>;
  /** What ships beside the provider's code. */
  shipped?: Opt<Facts>;
  /** Whether it can be asked what exists. Otherwise what is known of it is what exists. */
  hasLiveList?: Opt<boolean>;
}

export interface CatalogEntry {
  readonly info: ModelInfo;
  /** It exists, as far as is known. A chat model that does not is forwarded all the same, an image model is not. */
  readonly listed: boolean;
  readonly sources: FactSources;
}

/** Which listings are wanted. */
export interface CatalogQuery {
  operation?: Opt<Operation>;
  provider?: Opt<string>;
  privacy?: Opt<Privacy>;
  isAllowed?: Opt<(id: string) => boolean>;
}

export interface Catalog {
  /** Every kind that a model may have here. A model of another kind is listed, and no frontend asks for it. */
  readonly operations: ReadonlyMap<string, OperationSpec>;
  /** Moves whenever anything here changes. */
  readonly version: number;
  find(provider: string, model: string): CatalogEntry;
  /** Of one provider, as it is known now: what is learned later makes another one. */
  entriesOf(provider: string): ReadonlyMap<string, CatalogEntry>;
  /** Everything that exists: aliases first, then by provider as the config has them, by name. */
  list(of?: CatalogQuery): readonly Listing[];
  listing(id: string): Listing | undefined;
  /** For a name that is not known: at most three that are, nearest first. */
  suggest(id: string, kind?: Operation, may?: (id: string) => boolean): readonly string[];
}

export interface CatalogSources {
  providers?: Opt<ReadonlyMap<string, ProviderFacts>>;
  /** Names that stand for others; patterns are left out. */
  aliases?: Opt<ReadonlyMap<string, readonly string[]>>;
  lists?: Opt<ModelLists>;
  /** Every kind that is mounted, or that the gateway knows by itself. */
  operations?: Opt<ReadonlyMap<string, OperationSpec>>;
  policyOf?: Opt<(provider: string, info: ModelInfo) => EffectivePolicy>;
  now?: Opt<() => number>;
}

/** Policies carry dates, so nothing computed from them is kept for longer. */
const CACHE_TTL_MS = 60_000;
const MAX_PRICE_REFERENCES = 4;
const NO_SOURCES: FactSources = {};
const NO_ENTRIES: ReadonlyMap<string, CatalogEntry> = new Map();

/** Disposed with its generation: until then it follows the live lists. */
export function createCatalog(parts: CatalogSources = {}): Catalog & Disposable {
  const {
    providers = new Map<string, ProviderFacts>(),
    aliases = new Map<string, readonly string[]>(),
    lists = createInMemoryModelLists(),
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
    stated.set(name, collectEntries(stock, lists.of(name), operations));
    // A price may be borrowed across providers, so models that borrow are worked out again.
    for (const [other, models] of stated)
      if (other === name || [...models.values()].some((f) => f.info.pricedAs !== undefined))
        known.set(other, withReferencedPrices(other, stated));
    listings = undefined;
    version++;
  };
  for (const name of providers.keys()) work(name);
  const stop = lists.onChange(work);

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
    [Symbol.dispose]: stop,
  };
}

const compareByModel = (a: CatalogEntry, b: CatalogEntry): number =>
  a.info.model < b.info.model ? -1 : 1;

/** All that the sources say of one provider's models. */
function collectEntries(
  facts: ProviderFacts,
  liveLists: ReturnType<ModelLists["of"]>,
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
  for (const [model, said] of operator ?? []) addLayer(model, { from: "operator", facts: said });
  for (const { credential, at: ms, models } of liveLists ?? []) {
    const at = new Date(ms).toISOString();
    for (const said of models) {
      live.add(said.model);
      addLayer(said.model, { from: "live", at, credential, facts: said });
    }
  }
  for (const said of shipped?.models ?? [])
    addLayer(said.model, { from: "shipped", at: shipped!.asOf, facts: said });
  const found = new Map<string, CatalogEntry>();
  for (const [model, said] of layers) {
    const { info, sources } = mergeFacts(model, said);
    const named = operator?.get(model)?.operation !== undefined;
    const ships = said.some((l) => l.from === "shipped");
    // Until a list was ever heard, shipped facts stand in for it, but for kinds whose models must stand in a list.
    const waits = hasLiveList && (operations.get(info.operation)?.requiresCatalogEntry ?? true);
    const assumed = liveLists === undefined && ships && !waits;
    found.set(model, { info, sources, listed: named || live.has(model) || assumed });
  }
  return found;
}

/** The same, with prices that are stated as another model's. */
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
