// Which names may stand as labels. A model's must be known to the catalogue; keys and labels are the first few that came.
import type { Context } from "tollgate/plugin";
import { OTHER } from "./series.ts";

/** Asking the catalogue for all that it has is dear, and a name that is new is asked for by a client. */
const AGAIN_MS = 10_000;

export interface ModelName {
  /** As the label says it. */
  readonly model: string;
  readonly kind: string;
}

export class ModelNames {
  readonly #catalogue: Context["catalogue"];
  #listed: ReadonlyMap<string, string> = new Map();
  #readAt = -Infinity;

  constructor(catalogue: Context["catalogue"]) {
    this.#catalogue = catalogue;
  }

  /** What a provider calls a model; `other` unless the catalogue or an alias names it. */
  of(provider: string, model: string): ModelName {
    const id = `${provider}/${model}`;
    const kind = this.#catalogue.find(id)?.kind ?? this.#all().get(id);
    return kind === undefined ? { model: OTHER, kind: "chat" } : { model, kind };
  }

  #all(): ReadonlyMap<string, string> {
    const now = performance.now();
    if (now - this.#readAt < AGAIN_MS) return this.#listed;
    this.#readAt = now;
    return (this.#listed = new Map(
      this.#catalogue.list({}).map(({ provider, model, kind }) => [`${provider}/${model}`, kind]),
    ));
  }
}

/** So many different ones, the first that came; the rest is `other`. */
export class FirstFew {
  readonly #seen = new Set<string>();
  readonly #most: number;

  constructor(most: number) {
    this.#most = most;
  }

  of(value: string): string {
    if (this.#seen.has(value)) return value;
    if (this.#seen.size >= this.#most) return OTHER;
    this.#seen.add(value);
    return value;
  }
}
