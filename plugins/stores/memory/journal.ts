// The rows of a ledger in memory, in their order, with the way back to before a batch.
import type { KeyRecord, Price } from "tollgate/plugin";
import type { OpenCalls } from "../book/calls.ts";
import { nth, type Past, type Row } from "../book/row.ts";
import { inRows, type OpenRow, type RowJournal } from "../book/rows.ts";

export interface MemoryJournal extends RowJournal {
  /** By seq, ascending. */
  readonly rows: ReadonlyMap<number, Row>;
  readonly keys: ReadonlyMap<string, KeyRecord>;
  readonly prices: ReadonlyMap<string, Price>;
  closed(attempt: string): boolean;
  undo(): void;
  done(): void;
  /** Forgets the oldest rows of calls that are over. */
  trim(keep: number, open: OpenCalls<OpenRow>): void;
}

const identity = (row: Row): string => JSON.stringify([row.attempt, row.kind, nth(row)]);

export function createJournal(instance: () => string): MemoryJournal {
  const rows = new Map<number, Row>();
  const attempts = new Map<string, Past>();
  const identities = new Set<string>();
  const keys = new Map<string, KeyRecord>();
  const prices = new Map<string, Price>();
  let last = 0;
  let undoing: (() => void)[] = [];

  function set<K, V>(map: Map<K, V>, key: K, value: V): void {
    const before = map.get(key);
    undoing.push(() => (before === undefined ? map.delete(key) : map.set(key, before)));
    map.set(key, value);
  }

  function write(row: Row): boolean {
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
