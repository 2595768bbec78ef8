import { chatOperation } from "../model/operations/chat-operation.ts";
import type { ModelInfo, Price } from "../model/facts.ts";
import type { Opt } from "../model/values.ts";
import { FREE } from "../money/price.ts";

/** The source of a fact. */
export interface FactSource {
  from: "operator" | "live" | "feed" | "shipped";
  /**
   * ISO date. For a live list, the time when it was received. For the price feed, the time when its
   * document was issued. For shipped facts, the date when their source was last read.
   */
  at?: Opt<string>;
  /** Credential whose list contains the fact. */
  credential?: Opt<string>;
  /** Model from which the price was taken. */
  pricedAs?: Opt<string>;
}

/** Source by field. Nested facts are listed one by one, for example "limits.context". */
export type FactSources = { readonly [field: string]: FactSource };

/** Facts from one source. `free` means a price of zero. A missing price is unknown, never zero. */
export type StatedFacts = Partial<Omit<ModelInfo, "price">> & {
  readonly price?: Opt<Price | "free">;
};

export interface FactLayer extends FactSource {
  facts: StatedFacts;
}

/**
 * Fields that are taken completely from one layer. Parts of two prices do not make a valid price,
 * and each promise needs its own evidence.
 */
const ATOMIC_FIELDS = [
  "name",
  "description",
  "protocols",
  "rejectedFields",
  "dataPolicy",
  "released",
  "retires",
] as const;
/** Fields that are merged fact by fact. */
const NESTED_FIELDS = ["can", "limits", "image"] as const;

/**
 * Merges the facts about one model. Layers are ordered by strength, and each fact is taken from the
 * first layer that contains it. Invariant: a weaker layer never changes a fact of a stronger layer,
 * and a fact that is in no layer stays unset.
 */
export function mergeFacts(
  model: string,
  layers: readonly FactLayer[],
): { info: ModelInfo; sources: FactSources } {
  const info: Record<string, unknown> = { model, operation: chatOperation.name };
  const sources: Record<string, FactSource> = {};
  const note = (field: string, { from, at, credential }: FactLayer) => {
    sources[field] = { from, at, ...(credential !== undefined && { credential }) };
  };
  const kind = operationLayerOf(layers);
  if (kind) {
    info["operation"] = kind.facts.operation;
    note("operation", kind);
  }
  for (const field of ATOMIC_FIELDS) {
    const layer = layers.find((l) => l.facts[field] !== undefined);
    if (!layer) continue;
    info[field] = layer.facts[field];
    note(field, layer);
  }
  const priced = layers.find((l) => l.facts.price !== undefined || l.facts.pricedAs !== undefined);
  if (priced) {
    const { price, pricedAs } = priced.facts;
    if (price !== undefined) info["price"] = price === "free" ? FREE : price;
    if (pricedAs !== undefined) info["pricedAs"] = pricedAs;
    note("price", priced);
  }
  for (const set of NESTED_FIELDS) {
    const facts: Record<string, unknown> = {};
    for (const layer of layers.toReversed())
      for (const [fact, value] of Object.entries(layer.facts[set] ?? {})) {
        if (value === undefined) continue;
        facts[fact] = value;
        note(`${set}.${fact}`, layer);
      }
    if (Object.keys(facts).length > 0) info[set] = facts;
  }
  return { info: info as unknown as ModelInfo, sources };
}

/**
 * Returns the layer that determines the operation. Lists without operations also report "chat".
 * Unless the operator sets the operation, any other operation in any layer therefore takes
 * precedence over "chat".
 */
function operationLayerOf(layers: readonly FactLayer[]): FactLayer | undefined {
  return (
    layers.find((l) => l.from === "operator" && l.facts.operation !== undefined) ??
    layers.find(
      (l) => l.facts.operation !== undefined && l.facts.operation !== chatOperation.name,
    ) ??
    layers.find((l) => l.facts.operation !== undefined)
  );
}
