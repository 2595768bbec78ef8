// The store as a worker has it: every method is a question to the process that owns it. Nothing is kept here, so that
// what one worker writes is what every other one reads.
import type { Store } from "../../plugin/store.ts";
import type { Answers, Link } from "./link.ts";
import { READS } from "../services/store-questions.ts";
import { heard, pack, told, unpack, type PackedBatch, type WireReply } from "./wire.ts";

/** Without a lease: the owner gives signs of life for all. */
export const borrowed = (link: Pick<Link, "ask">): Store => ({
  open: (owner) => link.ask("open", owner),
  apply: async (batch) => heard(await link.ask<WireReply>("apply", pack(batch))),
  ...(Object.fromEntries(
    // A signal cannot be sent: the owner's own desk says how much one key may ask of it.
    READS.map((name) => [
      name,
      (...args: unknown[]) => link.ask(name, ...args.filter((arg) => !isWanted(arg))),
    ]),
  ) as Pick<Required<Store>, (typeof READS)[number]>),
});

/** The owner's side of it. A worker opens nothing, and what it writes goes together with what others do. */
export const lending = (
  store: Store,
  reports: Pick<Store, "entries" | "totals">,
  apply: Store["apply"],
): Answers => ({
  apply: async (packed: PackedBatch) => told(await apply(unpack(packed))),
  key: (digest: string) => store.key(digest),
  keys: (page?: never) => store.keys(page),
  // What it does not have is empty: a worker asks nothing of an account that is none.
  accounts: (page?: never) => store.accounts?.(page) ?? { items: [] },
  counted: (limits: never, at: number) => store.counted?.(limits, at) ?? [],
  entries: (query: never, page?: never) => reports.entries(query, page),
  totals: (query: never) => reports.totals(query),
  price: (hash: string) => store.price?.(hash),
  verify: () => store.verify?.() ?? [],
});

const isWanted = (arg: unknown): boolean =>
  typeof arg === "object" && arg !== null && "signal" in arg;
