// The store as a worker has it: every method is a question to the process that owns it. Nothing is kept here, so that
// what one worker writes is what every other one reads.
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

/** Without a lease: the owner gives signs of life for all. */
export const createRemoteStore = (link: Pick<IpcLink, "call">): Store => ({
  open: (owner) => link.call("open", owner),
  apply: async (batch) => unpackResults(await link.call<PackedResults>("apply", packBatch(batch))),
  ...(Object.fromEntries(
    // A signal cannot be sent: the owner's own desk says how much one key may ask of it.
    STORE_READ_METHODS.map((name) => [
      name,
      (...args: unknown[]) => link.call(name, ...args.filter((arg) => !hasSignal(arg))),
    ]),
  ) as Pick<Required<Store>, (typeof STORE_READ_METHODS)[number]>),
});

/** The owner's side of it. A worker opens nothing, and what it writes goes together with what others do. */
export const createStoreHandlers = (
  store: Store,
  reports: Pick<Store, "listEntries" | "sumEntries">,
  apply: Store["apply"],
): IpcHandlers & Record<"apply" | (typeof STORE_READ_METHODS)[number], IpcHandlers[string]> => ({
  apply: async (packed: PackedBatch) => packResults(await apply(unpackBatch(packed))),
  findKey: (digest: string) => store.findKey(digest),
  listKeys: (page?: never) => store.listKeys(page),
  // What it does not have is empty: a worker asks nothing of an account that is none.
  listAccounts: (page?: never) => store.listAccounts?.(page) ?? { items: [] },
  readLimits: (limits: never, at: number) => store.readLimits?.(limits, at) ?? [],
  listEntries: (query: never, page?: never) => reports.listEntries(query, page),
  sumEntries: (query: never) => reports.sumEntries(query),
  findPrice: (hash: string) => store.findPrice?.(hash),
  verify: () => store.verify?.() ?? [],
});

const hasSignal = (arg: unknown): boolean =>
  typeof arg === "object" && arg !== null && "signal" in arg;
