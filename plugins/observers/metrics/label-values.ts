// Limits label values. A model name must be known to the catalog. For keys and labels, only the
// first values up to a limit are used.
import type { Context } from "tollgate/plugin";
import { OTHER } from "./series.ts";

/** Reading the whole catalog is expensive, and clients can trigger it with unknown model names. */
const CATALOG_TTL_MS = 10_000;

export interface ModelLabels {
  /** Model name as a label value. */
  readonly model: string;
  readonly operation: string;
}

export class ModelLabelValues {
  readonly #catalog: Context["catalog"];
  #knownModels: ReadonlyMap<string, string> = new Map();
  #readAt = -Infinity;

  constructor(catalog: Context["catalog"]) {
    this.#catalog = catalog;
  }

  /**
   * Returns the labels of a provider's model name. The name is `other` unless the catalog or an
   * alias contains it.
   */
  labelsFor(provider: string, model: string): ModelLabels {
    const id = `${provider}/${model}`;
    const kind = this.#catalog.find(id)?.operation ?? this.#readModels().get(id);
    return kind === undefined ? { model: OTHER, operation: "chat" } : { model, operation: kind };
  }

  #readModels(): ReadonlyMap<string, string> {
    const now = performance.now();
    if (now - this.#readAt < CATALOG_TTL_MS) return this.#knownModels;
    this.#readAt = now;
    return (this.#knownModels = new Map(
      this.#catalog
        .list({})
        .map(({ provider, model, operation }) => [`${provider}/${model}`, operation]),
    ));
  }
}

/** Keeps the first distinct values up to a limit and maps all others to `other`. */
export class BoundedValues {
  readonly #seen = new Set<string>();
  readonly #most: number;

  constructor(most: number) {
    this.#most = most;
  }

  labelFor(value: string): string {
    if (this.#seen.has(value)) return value;
    if (this.#seen.size >= this.#most) return OTHER;
    this.#seen.add(value);
    return value;
  }
}
