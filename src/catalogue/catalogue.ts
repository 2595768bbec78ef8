// The catalogue: which models exist right now, and what is known of each, with the source of it and since when.
// May import: lib, model, money. Makes no call: lists are brought by refresh.ts, facts are handed in as data. A question
// is a Map lookup; whatever changes is worked out when it changes, off the path of any request.
import { wallClock } from "../lib/wall-clock.ts";
import { chatWork } from "../model/chat-work.ts";
import { OWN_WORKS } from "../model/own-works.ts";
import type { Work } from "../model/work.ts";
import type { EffectivePolicy, Facts, ModelInfo, Privacy } from "../model/facts.ts";
import type { Kind } from "../model/request.ts";
import type { Opt } from "../model/values.ts";
import { shared } from "./alias.ts";
import type { Listing } from "./listing.ts";
import { createLists, type Lists } from "./lists.ts";
import { merge, type FactLayer, type StatedFacts, type FactSources } from "./merge.ts";
import { near } from "./near.ts";
import { effectivePolicy, satisfies } from "./policy.ts";

/** One provider, as a config mounts it. */
export interface ProviderFacts {
  /** The operator's own facts, by upstream model name: they win. One that states a `kind` says that the model exists. */
  operator?: Opt<ReadonlyMap<string, StatedFacts>>;
  /** What ships beside the provider's code. */
  shipped?: Opt<Facts>;
  /** Whether it can be asked what exists. Otherwise what is known of it is what exists. */
  lists?: Opt<boolean>;
}

export interface CatalogueEntry {
  readonly info: ModelInfo;
  /** It exists, as far as is known. A chat model that does not is forwarded all the same, an image model is not. */
  readonly listed: boolean;
  readonly sources: FactSources;
}

/** Which listings are wanted. */
export interface CatalogueQuery {
  kind?: Opt<Kind>;
  provider?: Opt<string>;
  privacy?: Opt<Privacy>;
  may?: Opt<(id: string) => boolean>;
}

export interface Catalogue {
  /** Every kind that a model may have here. A model of another kind is listed, and no frontend asks for it. */
  readonly works: ReadonlyMap<string, Work>;
  /** Moves whenever anything here changes. */
  readonly version: number;
  find(provider: string, model: string): CatalogueEntry;
  /** Of one provider, as it is known now: what is learned later makes another one. */
  shelf(provider: string): ReadonlyMap<string, CatalogueEntry>;
  /** Everything that exists: aliases first, then by provider as the config has them, by name. */
  list(of?: CatalogueQuery): readonly Listing[];
  listing(id: string): Listing | undefined;
  /** For a name that is not known: at most three that are, nearest first. */
  near(id: string, kind?: Kind, may?: (id: string) => boolean): readonly string[];
}

export interface CatalogueParts {
  providers?: Opt<ReadonlyMap<string, ProviderFacts>>;
  /** Names that stand for others; patterns are left out. */
  aliases?: Opt<ReadonlyMap<string, readonly string[]>>;
  lists?: Opt<Lists>;
  /** Every kind that is mounted, or that the gateway knows by itself. */
  works?: Opt<ReadonlyMap<string, Work>>;
  policy?: Opt<(provider: string, info: ModelInfo) => EffectivePolicy>;
  now?: Opt<() => number>;
}

/** Policies carry dates, so nothing computed from them is kept for longer. */
const KEEP_MS = 60_000;
const MAX_BORROWS = 4;
const NO_SOURCES: FactSources = {};
const NOTHING: ReadonlyMap<string, CatalogueEntry> = new Map();

/** Disposed with its generation: until then it follows the live lists. */
export function createCatalogue(parts: CatalogueParts = {}): Catalogue & Disposable {
  const {
    providers = new Map<string, ProviderFacts>(),
    aliases = new Map<string, readonly string[]>(),
    lists = createLists(),
    works = OWN_WORKS,
    now = wallClock,
    policy = (_: string, info: ModelInfo) =>
      effectivePolicy({ provider: undefined, model: info.data, trusted: true, now: now() }),
  } = parts;
  const stated = new Map<string, Map<string, CatalogueEntry>>();
  const known = new Map<string, ReadonlyMap<string, CatalogueEntry>>();
  let version = 0;
  let listings: ReadonlyMap<string, Listing> | undefined;
  let keptAt = 0;

  const work = (name: string): void => {
    const stock = providers.get(name);
    if (!stock) return;
    stated.set(name, stocktake(stock, lists.of(name), works));
    // A price may be borrowed across providers, so models that borrow are worked out again.
    for (const [other, models] of stated)
      if (other === name || [...models.values()].some((f) => f.info.pricedAs !== undefined))
        known.set(other, borrowed(other, stated));
    listings = undefined;
    version++;
  };
  for (const name of providers.keys()) work(name);
  const stop = lists.onChange(work);

  const all = (): ReadonlyMap<string, Listing> => {
    const age = now() - keptAt;
    if (listings && age >= 0 && age < KEEP_MS) return listings;
    const found = new Map<string, Listing>();
    for (const [provider, models] of known)
      for (const { info, listed } of [...models.values()].toSorted(byName))
        if (listed) {
          const id = `${provider}/${info.model}`;
          found.set(id, { ...info, id, provider, policy: policy(provider, info) });
        }
    const named = shared(aliases, found);
    for (const id of named.keys()) found.delete(id);
    keptAt = now();
    return (listings = new Map([...named, ...found]));
  };

  return {
    get version() {
      return version;
    },
    works,
    find: (provider, model) =>
      known.get(provider)?.get(model) ?? {
        info: { model, kind: chatWork.kind },
        listed: false,
        sources: NO_SOURCES,
      },
    shelf: (provider) => known.get(provider) ?? NOTHING,
    list({ kind, provider, privacy = "off", may } = {}) {
      return [...all().values()].filter(
        (l) =>
          (kind === undefined || l.kind === kind) &&
          (provider === undefined || l.provider === provider) &&
          (may === undefined || may(l.id)) &&
          satisfies(privacy, l.policy),
      );
    },
    listing: (id) => all().get(id),
    near(id, kind, may) {
      const ids = [...all().values()]
        .filter((l) => (kind === undefined || l.kind === kind) && (may === undefined || may(l.id)))
        .map((l) => l.id);
      return near(id, ids);
    },
    [Symbol.dispose]: stop,
  };
}

const byName = (a: CatalogueEntry, b: CatalogueEntry): number =>
  a.info.model < b.info.model ? -1 : 1;

/** All that the sources say of one provider's models. */
function stocktake(
  stock: ProviderFacts,
  heard: ReturnType<Lists["of"]>,
  works: ReadonlyMap<string, Work>,
): Map<string, CatalogueEntry> {
  const { operator, shipped, lists = false } = stock;
  const layers = new Map<string, FactLayer[]>();
  const live = new Set<string>();
  const say = (model: string, layer: FactLayer) => {
    const mine = layers.get(model);
    if (mine) mine.push(layer);
    else layers.set(model, [layer]);
  };
  for (const [model, said] of operator ?? []) say(model, { from: "operator", said });
  for (const { credential, at: ms, models } of heard ?? []) {
    const at = new Date(ms).toISOString();
    for (const said of models) {
      live.add(said.model);
      say(said.model, { from: "live", at, credential, said });
    }
  }
  for (const said of shipped?.models ?? [])
    say(said.model, { from: "shipped", at: shipped!.asOf, said });
  const found = new Map<string, CatalogueEntry>();
  for (const [model, said] of layers) {
    const { info, sources } = merge(model, said);
    const named = operator?.get(model)?.kind !== undefined;
    const ships = said.some((l) => l.from === "shipped");
    // Until a list was ever heard, shipped facts stand in for it, but for kinds whose models must stand in a list.
    const waits = lists && (works.get(info.kind)?.listed ?? true);
    const assumed = heard === undefined && ships && !waits;
    found.set(model, { info, sources, listed: named || live.has(model) || assumed });
  }
  return found;
}

/** The same, with prices that are stated as another model's. */
function borrowed(
  provider: string,
  stated: ReadonlyMap<string, ReadonlyMap<string, CatalogueEntry>>,
): ReadonlyMap<string, CatalogueEntry> {
  const models = stated.get(provider)!;
  const at = (from: string, id: string): [string, CatalogueEntry] | undefined => {
    const mine = stated.get(from)?.get(id);
    if (mine) return [from, mine];
    const slash = id.indexOf("/");
    const other = stated.get(id.slice(0, slash))?.get(id.slice(slash + 1));
    return other && [id.slice(0, slash), other];
  };
  const resolved = new Map<string, CatalogueEntry>();
  for (const [model, found] of models) {
    let from = provider;
    let lender: CatalogueEntry | undefined = found;
    for (let hop = 0; lender && lender.info.price === undefined && hop < MAX_BORROWS; hop++) {
      const { pricedAs }: ModelInfo = lender.info;
      const next: [string, CatalogueEntry] | undefined =
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
              price: { ...lender!.sources["price"]!, as: `${from}/${lender!.info.model}` },
            },
          },
    );
  }
  return resolved;
}
