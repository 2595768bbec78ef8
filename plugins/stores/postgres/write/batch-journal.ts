// The journal of the slow path: the rows of a batch's calls in the database, and the rows that the
// batch adds. It is loaded first, so that the ledger rules can query it synchronously.
import type { AccountRecord, KeyRecord, Price, StoreCommand } from "tollgate/plugin";
import {
  createRowWriter,
  rowQualifier,
  createOpenRow,
  type CallRows,
  type LedgerRow,
  type OpenRow,
  type Progress,
  type RowJournal,
} from "tollgate/store";

interface AttemptRows {
  closedCall: CallRows | undefined;
  readonly names: Set<string>;
}

/** Columns of an open call. */
export interface StoredOpenCall {
  readonly progress: Progress | undefined;
  /** For a job's own call: amounts that its lines took. */
  readonly lineAmounts: readonly bigint[] | undefined;
}

/** A journal with everything that the rules wrote to it. */
export interface BatchJournal {
  readonly journal: RowJournal;
  readonly openRows: readonly OpenRow[];
  readonly rows: readonly LedgerRow[];
  /** Returns the time at which the call of a row began. */
  callStart(row: LedgerRow): number;
  readonly progress: ReadonlyMap<string, Progress>;
  /** Amounts that the lines of jobs took, by the job's own call. */
  readonly lineAmounts: ReadonlyMap<string, readonly bigint[]>;
  readonly keys: ReadonlyMap<string, KeyRecord>;
  readonly accounts: ReadonlyMap<string, AccountRecord>;
  readonly prices: ReadonlyMap<string, Price>;
  /** Returns whether the database already has a record. */
  has(kind: "key" | "account", id: string): boolean;
  /**
   * Sets the command that is applied next. Rows get the time of this command, whatever clock the
   * limits use.
   */
  setCommand(command: StoreCommand): void;
}

const rowName = (row: LedgerRow): string => `${row.kind} ${rowQualifier(row)}`;

/**
 * @param found Rows of the batch's calls, and of their jobs.
 * @param open Open calls among them.
 */
export function createBatchJournal(
  found: readonly LedgerRow[],
  open: ReadonlyMap<string, StoredOpenCall>,
  kept: {
    readonly accounts: ReadonlyMap<string, AccountRecord>;
    readonly keys: ReadonlyMap<string, KeyRecord>;
  },
  instance: string,
): BatchJournal {
  const attempts = new Map<string, AttemptRows>();
  const rows: LedgerRow[] = [];
  const progressByAttempt = new Map<string, Progress>();
  const lineAmounts = new Map<string, readonly bigint[]>();
  const keys = new Map<string, KeyRecord>();
  const put = new Map<string, AccountRecord>();
  const prices = new Map<string, Price>();
  let at = 0;

  function note(row: LedgerRow): boolean {
    let about = attempts.get(row.attempt);
    if (!about) attempts.set(row.attempt, (about = { closedCall: undefined, names: new Set() }));
    const name = rowName(row);
    if (about.names.has(name)) return false;
    about.names.add(name);
    if (row.kind === "reserve")
      about.closedCall = { reserve: row, settle: about.closedCall?.settle };
    if (row.kind === "settle")
      about.closedCall = { reserve: about.closedCall!.reserve, settle: row };
    return true;
  }
  function write(row: LedgerRow): boolean {
    row.at = at;
    if (!note(row)) return false;
    rows.push(row);
    return true;
  }

  for (const row of found) note(row);
  const journal: RowJournal & { getKey(digest: string): KeyRecord | undefined } = {
    ...createRowWriter(write, () => instance),
    hasReserve: (attempt) => attempts.get(attempt)?.closedCall !== undefined,
    closedCall: (attempt) => attempts.get(attempt)?.closedCall,
    progress({ attempt }, { usage, costNano = null }) {
      progressByAttempt.set(attempt, { usage, costNano });
    },
    setLineAmounts(job, amounts) {
      job.lineAmounts = amounts;
      lineAmounts.set(job.attempt, amounts);
    },
    putKey: (record) => void keys.set(record.digest, record),
    getKey: (digest) => keys.get(digest) ?? kept.keys.get(digest),
    accounts: {
      get: (id) => put.get(id) ?? kept.accounts.get(id),
      put: (record) => void put.set(record.id, record),
    },
    putPrice: (hash, price) => void (prices.has(hash) || prices.set(hash, price)),
    recordHeartbeat() {},
  };
  return {
    journal,
    openRows: [...open].map(([attempt, { progress, lineAmounts: taken }]) => ({
      ...createOpenRow(attempts.get(attempt)!.closedCall!.reserve, progress),
      lineAmounts: taken,
    })),
    rows,
    callStart: ({ attempt }) => attempts.get(attempt)!.closedCall!.reserve.at,
    progress: progressByAttempt,
    lineAmounts,
    keys,
    accounts: put,
    prices,
    has: (kind, id) => (kind === "key" ? kept.keys : kept.accounts).has(id),
    setCommand: (command) => void (at = command.at),
  };
}
