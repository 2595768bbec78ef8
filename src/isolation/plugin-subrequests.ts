// Subrequests that an isolated plugin sends on behalf of an open request. A subrequest is aborted
// when the plugin cancels it, and all subrequests are aborted when the plugin ends.
import { fail } from "../model/error.ts";
import type { HeadersIn, JsonObject } from "../model/values.ts";
import type { SubrequestResult, Context } from "../plugin/context.ts";
import type { RequestHead } from "../plugin/exchange.ts";
import type { KnownRequests } from "./known-requests.ts";

const isMapping = (it: unknown): it is Readonly<Record<string, unknown>> =>
  typeof it === "object" && it !== null && !Array.isArray(it);

export class PluginSubrequests {
  readonly #send: Context["sendSubrequest"];
  readonly #open = new Map<number, AbortController>();
  readonly #requests: KnownRequests<{ readonly exchange: RequestHead }>;

  constructor(
    ask: Context["sendSubrequest"],
    requests: KnownRequests<{ readonly exchange: RequestHead }>,
  ) {
    this.#send = ask;
    this.#requests = requests;
  }

  /**
   * Sends a subrequest. `exchange` is the id of the parent request. `n` is the plugin's number for
   * the subrequest, with which the plugin can cancel it.
   */
  async send(raw: unknown): Promise<SubrequestResult> {
    const { exchange, n, path, body, headers } = isMapping(raw) ? raw : {};
    const as = this.#requests.get(String(exchange))?.exchange;
    if (!as || typeof path !== "string" || !isMapping(body))
      return fail("invalid", "A subrequest needs a path, a body, and an open request.");
    const aborter = new AbortController();
    if (typeof n === "number") this.#open.set(n, aborter);
    try {
      return await this.#send(
        {
          path,
          body: body as JsonObject,
          headers: isMapping(headers) ? (headers as HeadersIn) : undefined,
        },
        { parentRequest: as, signal: aborter.signal },
      );
    } finally {
      if (this.#open.get(n as number) === aborter) this.#open.delete(n as number);
    }
  }

  cancel(raw: unknown): void {
    const n = isMapping(raw) ? raw["n"] : undefined;
    this.#open.get(n as number)?.abort();
  }

  /** Aborts all subrequests, because the plugin has ended. */
  cancelAll(): void {
    for (const aborter of this.#open.values()) aborter.abort();
    this.#open.clear();
  }
}
