// Which names may stand as labels. A model's must be known to the catalog; keys and labels are the first few that came.
import type { Context } from "tollgate/plugin";
import { OTHER } from "./series.ts";

/** Asking the catalog for all that it has is dear, and a name that is new is asked for by a client. */
const CATALOG_TTL_MS = 10_000;

export interface ModelLabels {
  /** As the label says it. */
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

  /** What a provider calls a model; `other` unless the catalog or an alias names it. */
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

/** So many different ones, the first that came; the rest is `other`. */
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
