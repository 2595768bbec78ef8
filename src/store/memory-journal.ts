// The rows of a ledger in memory, in their order, with the way back to before a batch.
import type { AccountRecord, KeyRecord, Price, Store } from "../plugin/index.ts";
import type { OpenCalls } from "./calls.ts";
import { keyCursor, pageOf, pageSize } from "./page.ts";
import { matches, nth, toEntry, type CallRows, type LedgerRow } from "./row.ts";
import { inRows, type OpenRow, type RowJournal } from "./rows.ts";
import { createTotals, isCounted } from "./totals.ts";

/** A journal whose rows are in this process, with what is asked of it. A store may write them down elsewhere too. */
export interface MemoryJournal extends RowJournal {
  /** By seq, ascending. */
  readonly rows: ReadonlyMap<number, LedgerRow>;
  readonly keys: ReadonlyMap<string, KeyRecord>;
  readonly records: ReadonlyMap<string, AccountRecord>;
  readonly prices: ReadonlyMap<string, Price>;
  /** Whether its call is over. */
  closed(attempt: string): boolean;
  /** Every change since the last `done` is taken back. */
  undo(): void;
  done(): void;
  /** Forgets the oldest rows of calls that are over. */
  trim(keep: number, open: OpenCalls<OpenRow>): void;
}

const identity = (row: LedgerRow): string => JSON.stringify([row.attempt, row.kind, nth(row)]);

/** Empty. `instance`: which process writes, asked at each row. */
export function createMemoryJournal(instance: () => string): MemoryJournal {
  const rows = new Map<number, LedgerRow>();
  const attempts = new Map<string, CallRows>();
  const identities = new Set<string>();
  const keys = new Map<string, KeyRecord>();
  const records = new Map<string, AccountRecord>();
  const prices = new Map<string, Price>();
  let last = 0;
  let undoing: (() => void)[] = [];

  function set<K, V>(map: Map<K, V>, key: K, value: V): void {
    const before = map.get(key);
    undoing.push(() => (before === undefined ? map.delete(key) : map.set(key, before)));
    map.set(key, value);
  }

  function write(row: LedgerRow): boolean {
    const name = identity(row);
    if (identities.has(name)) return false;
    identities.add(name);
    undoing.push(() => (identities.delete(name), last--));
    set(rows, ++last, row);
    if (row.kind === "reserve") set(attempts, row.attempt, { reserve: row, settle: undefined });
    if (row.kind === "settle") {
      const { reserve } = attempts.get(row.attempt)!;
      set(attempts, row.attempt, { reserve, settle: row });
    }
    return true;
  }

  return {
    ...inRows(write, instance),
    rows,
    keys,
    records,
    prices,
    knows: (attempt) => attempts.has(attempt),
    past: (attempt) => attempts.get(attempt),
    closed: (attempt) => attempts.get(attempt)?.settle !== undefined,
    progress(call, { usage, costNano = null }) {
      const before = call.heard;
      undoing.push(() => (call.heard = before));
      call.heard = { usage, costNano };
    },
    key: (record) => set(keys, record.digest, record),
    keyOf: (digest) => keys.get(digest),
    accounts: {
      get: (id) => records.get(id),
      put: (record) => set(records, record.id, record),
    },
    price: (hash, price) => void (prices.has(hash) || set(prices, hash, price)),
    alive() {},
    undo() {
      for (const step of undoing.reverse()) step();
      undoing = [];
    },
    done: () => void (undoing = []),
    trim(keep, open) {
      for (const [seq, row] of rows) {
        if (rows.size <= keep || open.get(row.attempt)) return;
        rows.delete(seq);
        identities.delete(identity(row));
        if (row.kind !== "reserve") attempts.delete(row.attempt);
      }
    },
  };
}

/** What a store answers from such a journal: every reading of the contract. */
export const journalReads = (
  journal: MemoryJournal,
): Pick<Store, "key" | "keys" | "entries" | "totals"> &
  Required<Pick<Store, "price" | "accounts">> => ({
  key: async (digest) => journal.keys.get(digest),
  price: async (hash) => journal.prices.get(hash),
  async keys(page) {
    const after = page?.after ?? "";
    const found = [...journal.keys.values()]
      .filter((record) => keyCursor(record) > after)
      .sort((a, b) => (keyCursor(a) < keyCursor(b) ? -1 : 1));
    return pageOf(found, pageSize(page), keyCursor);
  },
  async accounts(page) {
    const after = page?.after ?? "";
    const found = [...journal.records.values()]
      .filter(({ id }) => id > after)
      .sort((a, b) => (a.id < b.id ? -1 : 1));
    return pageOf(found, pageSize(page), ({ id }) => id);
  },
  async entries(query, page) {
    const after = Number(page?.after ?? 0);
    const size = pageSize(page);
    const found = [];
    for (const [seq, row] of journal.rows) {
      if (seq <= after || !matches(row, query, journal.closed(row.attempt))) continue;
      found.push(toEntry(row, seq));
      if (found.length > size) break;
    }
    return pageOf(found, size, ({ seq }) => String(seq));
  },
  async totals(query) {
    const sums = createTotals(query.by, query.zone);
    for (const row of journal.rows.values())
      if (isCounted(row, query.state) && matches(row, query, journal.closed(row.attempt)))
        sums.add(row);
    return sums.totals();
  },
});
