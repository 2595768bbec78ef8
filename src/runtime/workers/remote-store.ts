// The store as a worker uses it: every method is a request to the process that owns the store.
// Nothing is cached here, so what one worker writes is what every other one reads.
import type { Store } from "../../plugin/store/store.ts";
import type { IpcHandlers, IpcLink } from "./ipc-link.ts";
import { STORE_READ_METHODS } from "../ledger/store-read-methods.ts";
import {
  unpackResults,
  packBatch,
  packResults,
  unpackBatch,
  type PackedBatch,
  type PackedResults,
} from "./batch-codec.ts";

/** Has no lease, because the owner sends the heartbeats for all processes. */
export const createRemoteStore = (link: Pick<IpcLink, "call">): Store => ({
  open: (owner) => link.call("open", owner),
  apply: async (batch) => unpackResults(await link.call<PackedResults>("apply", packBatch(batch))),
  ...(Object.fromEntries(
    // A signal cannot be sent. The owner limits the queries per key itself.
    STORE_READ_METHODS.map((name) => [
      name,
      (...args: unknown[]) => link.call(name, ...args.filter((arg) => !hasSignal(arg))),
    ]),
  ) as Pick<Required<Store>, (typeof STORE_READ_METHODS)[number]>),
});

/**
 * Handlers on the owner's side. A worker does not open the store, and its writes are batched with
 * those of others.
 */
export const createStoreHandlers = (
  store: Store,
  reports: Pick<Store, "listEntries" | "sumEntries">,
  apply: Store["apply"],
): IpcHandlers & Record<"apply" | (typeof STORE_READ_METHODS)[number], IpcHandlers[string]> => ({
  apply: async (packed: PackedBatch) => packResults(await apply(unpackBatch(packed))),
  findKey: (digest: string) => store.findKey(digest),
  listKeys: (page?: never) => store.listKeys(page),
  // Methods that the store lacks return an empty result. A worker never requests an account that
  // does not exist.
  listAccounts: (page?: never) => store.listAccounts?.(page) ?? { items: [] },
  readLimits: (limits: never, at: number) => store.readLimits?.(limits, at) ?? [],
  listEntries: (query: never, page?: never) => reports.listEntries(query, page),
  sumEntries: (query: never) => reports.sumEntries(query),
  findPrice: (hash: string) => store.findPrice?.(hash),
  verify: () => store.verify?.() ?? [],
});

const hasSignal = (arg: unknown): boolean =>
  typeof arg === "object" && arg !== null && "signal" in arg;
