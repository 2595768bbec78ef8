// Looks up the names of keys, because records and rows contain only key IDs. Names are read from
// the store on demand and cached for a few seconds.
import { nearest } from "../../lib/text.ts";
import { fail } from "../../model/error.ts";
import type { Store } from "../../plugin/store/store.ts";

const CACHE_TTL_MS = 5_000;
const PAGE_SIZE = 500;
/** Maximum number of keys whose names are loaded. Other keys are shown by their ID. */
const MAX_NAMES = 20_000;

type NamesById = ReadonlyMap<string, string | undefined>;

export class KeyNames {
  readonly #store: Pick<Store, "listKeys">;
  #cached: { readonly at: number; readonly names: Promise<NamesById> } | undefined;

  constructor(store: Pick<Store, "listKeys">) {
    this.#store = store;
  }

  /** Returns the names by ID. The name is undefined for a key without one. */
  readAll(): Promise<NamesById> {
    const now = performance.now();
    if (!this.#cached || now - this.#cached.at > CACHE_TTL_MS) {
      const names = this.#readNames();
      this.#cached = { at: now, names };
      names.catch(() => (this.#cached = undefined));
    }
    return this.#cached.names;
  }

  /**
   * Returns the ID of a key that is given by its ID or by a unique name.
   * @param hasRequests Whether a key with this ID has sent requests.
   */
  async resolveId(idOrName: string, hasRequests: (id: string) => boolean): Promise<string> {
    const names = await this.readAll();
    if (names.has(idOrName)) return idOrName;
    const named = [...names].filter(([, name]) => name === idOrName).map(([id]) => id);
    if (named.length > 1)
      fail("invalid", `Several keys are named "${idOrName}". Use the ID: ${named.join(", ")}`, {
        param: "key",
      });
    if (named[0] !== undefined) return named[0];
    if (hasRequests(idOrName)) return idOrName;
    const near = nearest(
      idOrName,
      [...names].flatMap(([id, name]) => [id, name ?? id]),
    );
    return fail(
      "not_found",
      `Unknown key "${idOrName}".${near === undefined ? "" : ` Did you mean "${near}"?`} Keys in gateway.yaml are listed here by their ID after their first request.`,
      { param: "key", code: "no_such_key" },
    );
  }

  async #readNames(): Promise<NamesById> {
    const names = new Map<string, string | undefined>();
    let after: string | undefined;
    let read = 0;
    do {
      const page = await this.#store.listKeys({ after, limit: PAGE_SIZE });
      for (const { id, name } of page.items) names.set(id, name);
      read += page.items.length;
      after = page.next ?? undefined;
    } while (after !== undefined && read < MAX_NAMES);
    return names;
  }
}
