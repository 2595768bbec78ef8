// Ledger rows in memory, in order. A batch can be rolled back.
import { createSalt } from "./kit/salted-text.ts";
import type { RowCheckpoint, TransferBackend } from "./kit/row-backend.ts";
import { LedgerReplay } from "./kit/ledger-replay.ts";
import { addCheckpointRollups, type CheckpointRollup } from "./kit/checkpoint.ts";
import {
  fail,
  type AccountRecord,
  type AuditedCommand,
  type AuditEnd,
  type AuditEntry,
  type AuditLog,
  type JobStore,
  type KeyRecord,
  type Price,
  type Store,
} from "../plugin/index.ts";
import type { LedgerRules } from "./ledger-rules.ts";
import { createMeter } from "./meter.ts";
import type { OpenCalls } from "./open-calls.ts";
import {
  keyCursor,
  toPage,
  pageSize,
  createOpenRow,
  createRowWriter,
  type OpenRow,
  type RowJournal,
} from "./row-journal.ts";
import {
  matchesQuery,
  rowQualifier,
  toEntry,
  type CallRows,
  type LedgerRow,
} from "./ledger-row.ts";
import { createTotals, isSettledRow } from "./totals.ts";

/**
 * A journal that keeps its rows in this process, together with the data that readers need. A store
 * may also persist the rows elsewhere.
 */
export interface MemoryJournal extends RowJournal {
  /** Rows by sequence number, ascending. */
  readonly rows: ReadonlyMap<number, LedgerRow>;
  readonly keys: ReadonlyMap<string, KeyRecord>;
  readonly accountRecords: ReadonlyMap<string, AccountRecord>;
  readonly prices: ReadonlyMap<string, Price>;
  /** Whether the call has ended. */
  isClosed(attempt: string): boolean;
  /** Reverts all changes since the last `commit`. */
  rollback(): void;
  commit(): void;
  /** Writes a row of another store. Returns false if the journal has it or lacks its reserve. */
  importRow(row: LedgerRow): boolean;
  /** Drops the oldest rows of calls that have ended. */
  dropOldest(keep: number, open: OpenCalls<OpenRow>): void;
  /** The checkpoint that replaces compacted rows, if any. */
  readonly compacted: { checkpoint: RowCheckpoint; rollups: CheckpointRollup[] } | undefined;
  /** Implements `putCheckpoint` of a backend. */
  compact(checkpoint: RowCheckpoint, rollups: readonly CheckpointRollup[], head: number): boolean;
}

const rowIdentity = (row: LedgerRow): string =>
  JSON.stringify([row.attempt, row.kind, rowQualifier(row)]);

/**
 * Creates an empty journal. `instance` returns the id of the writing process and is called for each
 * row.
 */
export function createMemoryJournal(instance: () => string): MemoryJournal {
  const rows = new Map<number, LedgerRow>();
  const attempts = new Map<string, CallRows>();
  const identities = new Set<string>();
  const keys = new Map<string, KeyRecord>();
  const records = new Map<string, AccountRecord>();
  const prices = new Map<string, Price>();
  let compacted: MemoryJournal["compacted"];
  let last = 0;
  let undoing: (() => void)[] = [];

  function set<K, V>(map: Map<K, V>, key: K, value: V): void {
    const before = map.get(key);
    undoing.push(() => (before === undefined ? map.delete(key) : map.set(key, before)));
    map.set(key, value);
  }

  function write(row: LedgerRow): boolean {
    const name = rowIdentity(row);
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
    ...createRowWriter(write, instance),
    rows,
    keys,
    accountRecords: records,
    prices,
    hasReserve: (attempt) => attempts.has(attempt),
    closedCall: (attempt) => attempts.get(attempt),
    isClosed: (attempt) => attempts.get(attempt)?.settle !== undefined,
    progress(call, { usage, costNano = null }) {
      const before = call.progress;
      undoing.push(() => (call.progress = before));
      call.progress = { usage, costNano };
    },
    setLineAmounts(job, amounts) {
      const before = job.lineAmounts;
      undoing.push(() => (job.lineAmounts = before));
      job.lineAmounts = amounts;
    },
    putKey: (record) => set(keys, record.digest, record),
    getKey: (digest) => keys.get(digest),
    accounts: {
      get: (id) => records.get(id),
      put: (record) => set(records, record.id, record),
    },
    putPrice: (hash, price) => void (prices.has(hash) || set(prices, hash, price)),
    recordHeartbeat() {},
    rollback() {
      for (const step of undoing.reverse()) step();
      undoing = [];
    },
    commit: () => void (undoing = []),
    importRow: (row) => (row.kind === "settle" && !attempts.has(row.attempt) ? false : write(row)),
    get compacted() {
      return compacted;
    },
    compact(checkpoint, rollups, head) {
      for (const [seq, row] of rows) if (seq > head && row.kind === "adjust") return false;
      const retained = new Set(checkpoint.retained);
      for (const [seq, row] of rows) {
        if (seq > checkpoint.last || retained.has(seq)) continue;
        rows.delete(seq);
        identities.delete(rowIdentity(row));
        if (row.kind === "reserve") attempts.delete(row.attempt);
      }
      compacted = { checkpoint, rollups: [...(compacted?.rollups ?? []), ...rollups] };
      return true;
    },
    dropOldest(keep, open) {
      for (const [seq, row] of rows) {
        if (rows.size <= keep || open.get(row.attempt)) return;
        rows.delete(seq);
        identities.delete(rowIdentity(row));
        if (row.kind !== "reserve") attempts.delete(row.attempt);
      }
    },
  };
}

/**
 * Returns the backend of maintenance, verification, and transfer over this journal.
 * @param rules The rules that write to the journal.
 * @param audit The audit log, which is transferred with the ledger.
 * @param jobs The records of jobs, which are transferred with the ledger.
 */
export function createJournalBackend(
  journal: MemoryJournal,
  rules: Pick<
    LedgerRules<never, never, OpenRow>,
    "openCalls" | "meters" | "loadMeter" | "restoreCall"
  >,
  audit?: AuditLog,
  jobs?: JobStore,
): TransferBackend {
  let importPosition: number | undefined;
  return {
    secret: createSalt(),
    audit,
    jobs,
    *scanRows(after) {
      for (const entry of journal.rows) if (entry[0] > after) yield entry;
    },
    readSnapshot: async () => ({
      head: [...journal.rows.keys()].at(-1) ?? 0,
      openCalls: new Map(
        Array.from(
          rules.openCalls.values(),
          ({ attempt, progress }) => [attempt, progress] as const,
        ),
      ),
      meters: Array.from(rules.meters.values(), (meter) => ({ ...meter })),
    }),
    isOpen: (attempt) => rules.openCalls.get(attempt) !== undefined,
    readReserve: async (attempt) => journal.closedCall(attempt)?.reserve,
    async findContinued(attempts, after) {
      const some = new Set(attempts);
      const continued = new Set<string>();
      for (const [seq, { attempt }] of journal.rows)
        if (seq > after && some.has(attempt)) continued.add(attempt);
      return continued;
    },
    readBytes: async () => journal.rows.size * ROW_BYTES,
    readCheckpoint: async () => journal.compacted?.checkpoint,
    readRollups: async () => journal.compacted?.rollups ?? [],
    putCheckpoint: async (...of) => journal.compact(...of),
    async setLabels(seq, labels) {
      journal.rows.get(seq)!.labels = labels;
    },
    readKeys: async () => [...journal.keys.values()],
    readAccounts: async () => [...journal.accountRecords.values()],
    async putKey(record) {
      journal.putKey(record);
      journal.commit();
    },
    async putAccount(record) {
      journal.accounts!.put(record);
      journal.commit();
    },
    readPrices: async () => [...journal.prices],
    readShared: async () => [],
    stopWrites: async () => ({ async [Symbol.asyncDispose]() {} }),
    async beginImport() {
      if (importPosition === undefined && journal.rows.size > 0)
        return fail("conflict", "The store already contains a ledger.", { code: "not_empty" });
      return (importPosition ??= 0);
    },
    async importRows(rows, next) {
      for (const row of rows) journal.importRow(row);
      journal.commit();
      importPosition = next;
    },
    async importRemainder({ keys, accounts, prices, meters, lastProgress }) {
      for (const record of keys) journal.putKey(record);
      for (const record of accounts) journal.accounts!.put(record);
      for (const [hash, price] of prices) journal.putPrice(hash, price);
      journal.commit();
      for (const { id, level, at, max, notifiedLevel } of meters)
        rules.loadMeter({ ...createMeter(id), level, at, max, peak: level, notifiedLevel });
      const progress = new Map(
        lastProgress.map(([attempt, usage, costNano]) => [attempt, { usage, costNano }]),
      );
      const replay = new LedgerReplay<LedgerRow>();
      for (const row of journal.rows.values())
        if (row.kind === "reserve") replay.reserve(row, row);
        else if (row.kind === "settle") replay.settle(row);
      for (const [attempt, { data, lineAmounts }] of replay.open)
        rules.restoreCall({ ...createOpenRow(data, progress.get(attempt)), lineAmounts });
    },
    async finishImport() {
      importPosition = undefined;
    },
  };
}

/** Approximate size of a row in memory. */
const ROW_BYTES = 1_000;

/** Returns the read methods of a store over this journal. */
export const createJournalReads = (
  journal: MemoryJournal,
): Pick<Store, "findKey" | "listKeys" | "listEntries" | "sumEntries"> &
  Required<Pick<Store, "findPrice" | "listAccounts">> => ({
  findKey: async (digest) => journal.keys.get(digest),
  findPrice: async (hash) => journal.prices.get(hash),
  async listKeys(page) {
    const after = page?.after ?? "";
    const found = [...journal.keys.values()]
      .filter((record) => keyCursor(record) > after)
      .sort((a, b) => (keyCursor(a) < keyCursor(b) ? -1 : 1));
    return toPage(found, pageSize(page), keyCursor);
  },
  async listAccounts(page) {
    const after = page?.after ?? "";
    const found = [...journal.accountRecords.values()]
      .filter(({ id }) => id > after)
      .sort((a, b) => (a.id < b.id ? -1 : 1));
    return toPage(found, pageSize(page), ({ id }) => id);
  },
  async listEntries(query, page) {
    const after = Number(page?.after ?? 0);
    const size = pageSize(page);
    const found = [];
    for (const [seq, row] of journal.rows) {
      if (seq <= after || !matchesQuery(row, query, journal.isClosed(row.attempt))) continue;
      found.push(toEntry(row, seq));
      if (found.length > size) break;
    }
    return toPage(found, size, ({ seq }) => String(seq));
  },
  async sumEntries(query) {
    const sums = createTotals(query.by, query.zone);
    const rollups = journal.compacted?.rollups ?? [];
    addCheckpointRollups(sums, query, (from, to) =>
      rollups
        .filter(([, quarter]) => quarter >= from && quarter < to)
        .map(([, quarter, text]) => [quarter, text] as const),
    );
    for (const row of journal.rows.values())
      if (isSettledRow(row, query.state) && matchesQuery(row, query, journal.isClosed(row.attempt)))
        sums.add(row);
    return sums.totals();
  },
});

// An audit log in memory that keeps the most recent entries.

const MAX_ENTRIES = 10_000;
const DEFAULT_PAGE_SIZE = 100;

/** Combines an entry with its end. If the end is unknown, the outcome is `unknown`. */
export const toAuditedCommand = (entry: AuditEntry, end: AuditEnd | undefined): AuditedCommand => ({
  ...entry,
  outcome: end?.outcome ?? "unknown",
  ...(end?.code !== undefined && { code: end.code }),
});

/**
 * Creates an audit log for a store that ends with its process. Entries are copied when they are
 * stored and when they are returned.
 */
export function createMemoryAuditLog(): AuditLog {
  const entries = new Map<number, AuditEntry>();
  const ends = new Map<string, AuditEnd>();
  let last = 0;
  return {
    async begin(entry) {
      entries.set(++last, structuredClone(entry));
      const old = last - MAX_ENTRIES;
      ends.delete(entries.get(old)?.id ?? "");
      entries.delete(old);
    },
    async end(end) {
      ends.set(end.id, structuredClone(end));
    },
    async list(page) {
      const limit = page?.limit ?? DEFAULT_PAGE_SIZE;
      const from = page?.after === undefined ? last : Number(page.after) - 1;
      const items: AuditedCommand[] = [];
      let at = from;
      for (; at > 0 && items.length < limit; at--) {
        const entry = entries.get(at);
        if (!entry) break;
        items.push(structuredClone(toAuditedCommand(entry, ends.get(entry.id))));
      }
      return entries.has(at) ? { items, next: String(at + 1) } : { items };
    },
  };
}
