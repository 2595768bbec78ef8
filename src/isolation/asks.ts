// Models that a plugin outside asks on behalf of a request that it was told of. One that it gives up, and all of one that is gone, are
// ended here.
import { fail } from "../model/error.ts";
import type { JsonObject } from "../model/values.ts";
import type { AskedAnswer } from "../plugin/asked.ts";
import type { Context } from "../plugin/context.ts";
import type { Arrival } from "../plugin/exchange.ts";

const isMapping = (it: unknown): it is Readonly<Record<string, unknown>> =>
  typeof it === "object" && it !== null && !Array.isArray(it);

/** Requests whose end is never told are forgotten some time. */
const MOST = 20_000;

export class OutsideAsks {
  readonly #ask: Context["ask"];
  readonly #open = new Map<number, AbortController>();
  readonly #requests = new Map<string, Arrival>();

  constructor(ask: Context["ask"]) {
    this.#ask = ask;
  }

  told(x: Arrival): void {
    this.#requests.set(x.id, x);
    if (this.#requests.size > MOST) this.#requests.delete(this.#requests.keys().next().value!);
  }

  over({ id }: Arrival): void {
    this.#requests.delete(id);
  }

  /** `x` in what it said is the request's id, `n` its own number of this question, by which it may give it up. */
  async ask(said: unknown): Promise<AskedAnswer> {
    const { x, n, path, body } = isMapping(said) ? said : {};
    const as = this.#requests.get(String(x));
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
