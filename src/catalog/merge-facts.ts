import { chatOperation } from "../model/operations/chat-operation.ts";
import type { ModelInfo, Price } from "../model/facts.ts";
import type { Opt } from "../model/values.ts";
import { FREE } from "../money/price.ts";

/** The source that says so. */
export interface FactSource {
  from: "operator" | "live" | "shipped";
  /** ISO. For a live list, when it was heard; for shipped facts, when the source was last read. */
  at?: Opt<string>;
  /** Whose list. */
  credential?: Opt<string>;
  /** The model whose price this is. */
  pricedAs?: Opt<string>;
}

/** Field → the source that says so. Of what is a set of facts itself, each fact: "limits.context". */
export type FactSources = { readonly [field: string]: FactSource };

/** `free` says that zero is the price; an absent price is unknown, never zero. */
export type StatedFacts = Partial<Omit<ModelInfo, "price">> & {
  readonly price?: Opt<Price | "free">;
};

export interface FactLayer extends FactSource {
  facts: StatedFacts;
}

/** Taken whole: half a price from one list and half from another is no price, and a promise goes with its evidence. */
const ATOMIC_FIELDS = [
  "name",
  "protocols",
  "rejectedFields",
  "dataPolicy",
  "released",
  "retires",
] as const;
/** Sets of facts, each fact by itself. */
const NESTED_FIELDS = ["can", "limits", "image"] as const;

/**
 * What is known of one model. Layers stand strongest first, and a fact is taken from the first layer that states it.
 * The law: a weaker layer never changes what a stronger one says, and what no layer says stays absent.
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
 * "chat" is also what a list says that does not tell kinds apart, so below the operator's word any other kind counts for
 * more, whichever layer says it.
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
