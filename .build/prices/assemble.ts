// Assembles a price document from our own facts and further sources. Each figure names the sources
// that agree on it, and every disagreement is reported.
import type { Facts, ModelInfo, Price, PriceLine, Unit } from "tollgate/plugin";
import type { Source, Stated } from "./sources.ts";

export interface Disagreement {
  readonly model: string;
  readonly figure: string;
  /** US dollars per unit, by source. */
  readonly usd: Readonly<Record<string, string>>;
  /** Source of the figure that the document has. */
  readonly used: string;
}

export interface Report {
  readonly models: number;
  readonly priced: number;
  /** Priced models whose main rates two sources agree on. */
  readonly agreed: number;
  readonly figures: number;
  readonly agreedFigures: number;
  readonly disagreements: readonly Disagreement[];
  /** Rates that a price cannot express: "gpt-6: input_cost_per_token_above_272k_tokens_priority". */
  readonly skipped: readonly string[];
}

export interface AssembleInput {
  readonly version: number;
  readonly issued: string;
  /** Our facts, by the name of the provider's plugin. */
  readonly own: ReadonlyMap<string, Facts>;
  /** Further sources by ID, with their addresses and dates. */
  readonly sources: ReadonlyMap<
    string,
    { readonly list: Source; readonly url: string; readonly retrieved: string }
  >;
}

const OWN = "tollgate";
const OWN_URL = "https://github.com/tollgate/tollgate/tree/main/test/fixtures/facts";

export function assemble({ version, issued, own, sources }: AssembleInput): {
  readonly text: string;
  readonly report: Report;
} {
  const count = { models: 0, priced: 0, agreed: 0, figures: 0, agreedFigures: 0 };
  const disagreements: Disagreement[] = [];
  const skipped: string[] = [];
  const providers: Record<string, object[]> = {};
  const names = new Set([
    ...own.keys(),
    ...[...sources.values()].flatMap(({ list }) => [...list.keys()]),
  ]);
  for (const provider of [...names].sort()) {
    const facts = new Map(
      own.get(provider)?.models.map((info) => [info.model, withPrice(info, own.get(provider)!)]),
    );
    const others = new Map([...sources].map(([id, { list }]) => [id, byKey(list.get(provider))]));
    const listed: object[] = [];
    for (const model of modelsOf(facts, sources, provider)) {
      const info = facts.get(model);
      const stated = new Map<string, Stated>();
      for (const [id, list] of others) {
        const found = list.get(keyOf(model));
        if (found) stated.set(id, found);
      }
      const entry = assembleModel(`${provider}/${model}`, info, stated, {
        disagreements,
        skipped,
        isNewer: (source) => sources.get(source)!.retrieved > (own.get(provider)?.asOf ?? ""),
      });
      const operation =
        info?.operation ?? [...stated.values()].find((each) => each.operation)?.operation;
      if (operation === undefined || !entry.price) continue;
      listed.push(toPublished(model, operation, info, stated, entry));
      count.models++;
      count.priced++;
      const sets = [...entry.figures.values()];
      count.figures += sets.length;
      count.agreedFigures += sets.filter((ids) => ids.length > 1).length;
      const main = ["input", "output", "images", "seconds", "characters"].flatMap((unit) =>
        entry.figures.get(unit) ? [entry.figures.get(unit)!] : [],
      );
      if (main.length > 0 && main.every((ids) => ids.length > 1)) count.agreed++;
    }
    if (listed.length === 0) continue;
    for (const name of [provider, ...(SAME_MODELS[provider] ?? [])])
      providers[name] = [...(providers[name] ?? []), ...listed];
  }
  const oldest = [...own.values()].map(({ asOf }) => asOf).sort()[0] ?? issued.slice(0, 10);
  const addresses = Object.fromEntries([
    [OWN, { url: OWN_URL, retrieved: oldest }],
    ...[...sources].map(([id, { url, retrieved }]) => [id, { url, retrieved }]),
  ]);
  const body = Object.entries(providers).map(
    ([provider, models]) =>
      `${JSON.stringify(provider)}:[\n${models.map((each) => JSON.stringify(each)).join(",\n")}\n]`,
  );
  return {
    text: `{"version":${version},"issued":${JSON.stringify(issued)},"sources":${JSON.stringify(addresses)},"providers":{\n${body.join(",\n")}\n}}\n`,
    report: { ...count, disagreements, skipped },
  };
}

/** Plugins that offer the models of another plugin, at the same prices. */
const SAME_MODELS: Readonly<Record<string, readonly string[]>> = {
  azure: ["azure-foundry"],
  bedrock: ["aws"],
};

/** A document states the price of each model, and refers to no other model. */
const withPrice = (info: ModelInfo, { models }: Facts): ModelInfo => {
  const price =
    info.price ??
    models.find(({ model }) => info.pricedAs !== undefined && model === info.pricedAs)?.price;
  return price ? { ...info, price } : info;
};

/** Lists name versions with dots or dashes: "claude-sonnet-4.5", "claude-sonnet-4-5". */
const keyOf = (model: string): string => model.toLowerCase().replaceAll(".", "-");
const byKey = (list: ReadonlyMap<string, Stated> | undefined): ReadonlyMap<string, Stated> =>
  new Map([...(list ?? [])].map(([model, stated]) => [keyOf(model), stated]));

/**
 * Returns our models, and the models that a further source states for the provider itself. OpenRouter
 * does not decide which models a vendor has.
 */
function modelsOf(
  facts: ReadonlyMap<string, ModelInfo>,
  sources: AssembleInput["sources"],
  provider: string,
): readonly string[] {
  const known = new Set([...facts.keys()].map(keyOf));
  const further = [...sources]
    .filter(([id]) => id !== "openrouter" || provider === "openrouter")
    .flatMap(([, { list }]) => [...(list.get(provider)?.keys() ?? [])])
    .filter((model) => !known.has(keyOf(model)));
  return [
    ...facts.keys(),
    ...new Map(further.map((model) => [keyOf(model), model])).values(),
  ].sort();
}

interface AssembledModel {
  readonly price: Price | undefined;
  readonly figures: ReadonlyMap<string, readonly string[]>;
}

function assembleModel(
  id: string,
  info: ModelInfo | undefined,
  stated: ReadonlyMap<string, Stated>,
  notes: {
    readonly disagreements: Disagreement[];
    readonly skipped: string[];
    /** Whether a further source was retrieved after our facts about the provider. */
    readonly isNewer: (source: string) => boolean;
  },
): AssembledModel {
  const own = info?.price ? flatten(info.price) : new Map<string, bigint>();
  const states = new Map<string, ReadonlyMap<string, bigint>>([
    ...(own.size > 0 ? [[OWN, own] as const] : []),
    ...[...stated].map(([source, { figures }]) => [source, withOwnLifetime(figures, own)] as const),
  ]);
  for (const { skipped } of stated.values())
    for (const field of skipped) notes.skipped.push(`${id}: ${field}`);
  const figures = new Map<string, readonly string[]>();
  const chosen = new Map<string, bigint>();
  for (const figure of new Set([...states.values()].flatMap((each) => [...each.keys()]))) {
    const values = new Map(
      [...states].flatMap(([source, each]) =>
        each.has(figure) ? [[source, each.get(figure)!] as const] : [],
      ),
    );
    const value = choose(values, notes.isNewer);
    // A figure of one further source alone does not change a price of ours.
    if (own.size > 0 && !own.has(figure) && values.size < 2) continue;
    chosen.set(figure, value);
    figures.set(
      figure,
      [...values].filter(([, each]) => each === value).map(([source]) => source),
    );
    if ([...values.values()].some((each) => each !== value))
      notes.disagreements.push({
        model: id,
        figure,
        usd: Object.fromEntries([...values].map(([source, each]) => [source, toDecimal(each)])),
        used: figures.get(figure)![0]!,
      });
  }
  if (chosen.size === 0) return { price: undefined, figures };
  const price = toPrice(info?.price, own, chosen);
  const [timed] = [...stated].filter(([, { windows }]) => windows !== undefined);
  // Our own price states its hours itself.
  if (own.size > 0 || !timed) {
    if (timed && !info?.price?.hours) notes.skipped.push(`${id}: overrides by time`);
    return { price, figures };
  }
  let row = price;
  for (const { from, to, figures: rates } of timed[1].windows!)
    row = {
      ...toPrice(undefined, own, new Map([...chosen, ...rates])),
      hours: { from, to },
      otherwise: row,
    };
  return { price: row, figures };
}

/**
 * Further lists do not name the lifetime of a cache write. It is the one of our own price, if that
 * has only one.
 */
const withOwnLifetime = (
  figures: ReadonlyMap<string, bigint>,
  own: ReadonlyMap<string, bigint>,
): ReadonlyMap<string, bigint> =>
  own.has("cache_write_30m") && !own.has("cache_write_5m")
    ? new Map(
        [...figures].map(([figure, value]) => [
          figure.replace(/cache_write_5m$/, "cache_write_30m"),
          value,
        ]),
      )
    : figures;

/**
 * Two sources that agree outvote our own figure, if both were retrieved later. An older list may have
 * missed a new price. Otherwise, our own figure applies, then the one with the most votes.
 */
function choose(values: ReadonlyMap<string, bigint>, isNewer: (source: string) => boolean): bigint {
  const own = values.get(OWN);
  const voters = [...values].filter(
    ([source]) => own === undefined || source === OWN || isNewer(source),
  );
  const votes = [...Map.groupBy(voters, ([, value]) => value)].toSorted(
    ([, a], [, b]) => b.length - a.length,
  );
  const [most, second] = votes;
  const isClear = most !== undefined && most[1].length > (second?.[1].length ?? 0);
  if (isClear && most[1].length > 1) return most[0];
  return own ?? most![0];
}

const pieceFactor = (line: PriceLine): bigint => (line.per === 1 ? 1n : 1_000_000n);

/** Returns the figures of a price. Lines of a variant have no counterpart in other lists. */
export function flatten(price: Price): Map<string, bigint> {
  const figures = new Map<string, bigint>();
  const read = (lines: readonly PriceLine[], prefix: string) => {
    for (const line of lines)
      if (!line.variant) figures.set(`${prefix}${line.unit}`, toPico(line.usd) / pieceFactor(line));
  };
  read(price.lines, "");
  for (const { input, lines, tiers = {} } of price.over ?? []) {
    read(lines, `over.${input}.`);
    for (const [tier, raised] of Object.entries(tiers))
      read(raised, `over.${input}.tiers.${tier}.`);
  }
  for (const [tier, lines] of Object.entries(price.tiers ?? {})) read(lines, `tiers.${tier}.`);
  return figures;
}

function toPico(usd: string): bigint {
  const [whole, fraction = ""] = usd.split(".");
  return BigInt(whole! + fraction.padEnd(12, "0"));
}

function toDecimal(pico: bigint, places = 12): string {
  const digits = pico.toString().padStart(places + 1, "0");
  const fraction = digits.slice(-places).replace(/0+$/, "");
  return digits.slice(0, -places) + (fraction && `.${fraction}`);
}

const PIECES: readonly Unit[] = [
  "images",
  "megapixels",
  "seconds",
  "seconds_out",
  "characters",
  "pages",
  "searches",
  "fetches",
  "requests",
  "file_searches",
  "map_searches",
  "code_sessions",
  "tool_runs",
];

const toLine = (unit: Unit, pico: bigint): PriceLine =>
  PIECES.includes(unit)
    ? { unit, usd: toDecimal(pico), per: 1 }
    : { unit, usd: toDecimal(pico, 6), per: 1_000_000 };

/** Returns our price with the chosen figures, or a new price. Our own text stays if nothing differs. */
function toPrice(
  base: Price | undefined,
  own: ReadonlyMap<string, bigint>,
  chosen: ReadonlyMap<string, bigint>,
): Price {
  const differs = [...chosen].some(([figure, value]) => own.get(figure) !== value);
  if (base && !differs) return base;
  const lines = (prefix: string, known: readonly PriceLine[] = []): PriceLine[] => {
    const wanted = [...chosen].flatMap(([figure, value]) => {
      const unit = figure.startsWith(prefix) ? figure.slice(prefix.length) : ".";
      return unit.includes(".") ? [] : [[unit as Unit, value] as const];
    });
    return [
      ...wanted.map(([unit, value]) => toLine(unit, value)),
      ...known.filter(({ variant }) => variant),
    ];
  };
  /** Names after a prefix: "272000" after "over.". */
  const parts = (prefix: string): readonly string[] => [
    ...new Set(
      [...chosen.keys()]
        .filter((figure) => figure.startsWith(prefix))
        .map((figure) => figure.slice(prefix.length).split(".")[0]!),
    ),
  ];
  const over = parts("over.")
    .map(Number)
    .toSorted((a, b) => a - b);
  const tiersOf = (prefix: string, known: Price["tiers"]) => {
    const names = parts(`${prefix}tiers.`);
    const entries = names.map((name) => [name, lines(`${prefix}tiers.${name}.`, known?.[name])]);
    return names.length > 0 ? { tiers: Object.fromEntries(entries) } : {};
  };
  return {
    ...base,
    lines: lines("", base?.lines),
    ...(over.length > 0 && {
      over: over.map((input) => {
        const known = base?.over?.find((each) => each.input === input);
        const prefix = `over.${input}.`;
        return { input, lines: lines(prefix, known?.lines), ...tiersOf(prefix, known?.tiers) };
      }),
    }),
    ...tiersOf("", base?.tiers),
  };
}

function toPublished(
  model: string,
  operation: string,
  info: ModelInfo | undefined,
  stated: ReadonlyMap<string, Stated>,
  { price, figures }: AssembledModel,
): object {
  const first = <K extends "context" | "output" | "retires">(key: K) =>
    [...stated.values()].find((each) => each[key] !== undefined)?.[key];
  const limits = {
    context: info?.limits?.context ?? first("context"),
    output: info?.limits?.output ?? first("output"),
    images: info?.limits?.images,
  };
  const retires = info?.retires ?? first("retires");
  return {
    model,
    operation,
    ...(info?.name !== undefined && { name: info.name }),
    ...(info?.can && { can: info.can }),
    ...(info?.image && { image: info.image }),
    ...(Object.values(limits).some((limit) => limit !== undefined) && { limits }),
    ...(info?.released !== undefined && { released: info.released }),
    ...(retires !== undefined && { retires }),
    ...(price && { prices: [{ price }], figures: Object.fromEntries(figures) }),
  };
}
