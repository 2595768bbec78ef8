// Models that a plugin outside asks on behalf of a request that it was told of. One that it gives up, and all of one that is gone, are
// ended here.
import { fail } from "../model/error.ts";
import type { JsonObject } from "../model/values.ts";
import type { AskedAnswer } from "../plugin/asked.ts";
import type { Context } from "../plugin/context.ts";
import type { Arrival } from "../plugin/exchange.ts";
import type { ToldRequests } from "./told-requests.ts";

const isMapping = (it: unknown): it is Readonly<Record<string, unknown>> =>
  typeof it === "object" && it !== null && !Array.isArray(it);

export class OutsideAsks {
  readonly #ask: Context["ask"];
  readonly #open = new Map<number, AbortController>();
  readonly #told: ToldRequests<{ readonly x: Arrival }>;

  constructor(ask: Context["ask"], told: ToldRequests<{ readonly x: Arrival }>) {
    this.#ask = ask;
    this.#told = told;
  }

  /** `x` in what it said is the request's id, `n` its own number of this question, by which it may give it up. */
  async ask(said: unknown): Promise<AskedAnswer> {
    const { x, n, path, body } = isMapping(said) ? said : {};
    const as = this.#told.get(String(x))?.x;
    if (!as || typeof path !== "string" || !isMapping(body))
      return fail(
        "invalid",
        "A model is asked by a path and a body, for a request that is under way.",
      );
    const aborter = new AbortController();
    if (typeof n === "number") this.#open.set(n, aborter);
    try {
      return await this.#ask({ path, body: body as JsonObject }, { as, signal: aborter.signal });
    } finally {
      if (this.#open.get(n as number) === aborter) this.#open.delete(n as number);
    }
  }

  enough(said: unknown): void {
    const n = isMapping(said) ? said["n"] : undefined;
    this.#open.get(n as number)?.abort();
  }

  /** The plugin is gone. */
  lost(): void {
    for (const aborter of this.#open.values()) aborter.abort();
    this.#open.clear();
  }
}
