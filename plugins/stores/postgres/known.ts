// What the database knows of a batch's calls, and what the batch adds to it: the journal of the exact way. It is read first, so the book can
// ask without waiting.
import type { AccountRecord, KeyRecord, Price, StoreCommand } from "tollgate/plugin";
import {
  inRows,
  nth,
  openRow,
  type CallRows,
  type LedgerRow,
  type OpenRow,
  type Progress,
  type RowJournal,
} from "tollgate/store";

interface Attempt {
  past: CallRows | undefined;
  readonly names: Set<string>;
}

/** The journal, and what it was told to write. */
export interface Known {
  readonly journal: RowJournal;
  readonly open: readonly OpenRow[];
  readonly rows: readonly LedgerRow[];
  /** Of each row, when its call began. */
  began(row: LedgerRow): number;
  readonly heard: ReadonlyMap<string, Progress>;
  readonly keys: ReadonlyMap<string, KeyRecord>;
  readonly accounts: ReadonlyMap<string, AccountRecord>;
  readonly prices: ReadonlyMap<string, Price>;
  /** What is there already of a kind, by its name. */
  has(kind: "key" | "account", id: string): boolean;
  /** The command that the book is told now: its rows say its time, whatever the limits count by. */
  telling(command: StoreCommand): void;
}

const nameOf = (row: LedgerRow): string => `${row.kind} ${nth(row)}`;

/** `found`: rows of the batch's calls. `open`: those of them that are open, with what was last heard of them. */
export function known(
  found: readonly LedgerRow[],
  open: ReadonlyMap<string, Progress | undefined>,
  kept: {
    readonly accounts: ReadonlyMap<string, AccountRecord>;
    readonly keys: ReadonlyMap<string, KeyRecord>;
  },
  instance: string,
): Known {
  const attempts = new Map<string, Attempt>();
  const rows: LedgerRow[] = [];
  const heard = new Map<string, Progress>();
  const keys = new Map<string, KeyRecord>();
  const put = new Map<string, AccountRecord>();
  const prices = new Map<string, Price>();
  let at = 0;

  function note(row: LedgerRow): boolean {
    let about = attempts.get(row.attempt);
    if (!about) attempts.set(row.attempt, (about = { past: undefined, names: new Set() }));
    const name = nameOf(row);
    if (about.names.has(name)) return false;
    about.names.add(name);
    if (row.kind === "reserve") about.past = { reserve: row, settle: about.past?.settle };
    if (row.kind === "settle") about.past = { reserve: about.past!.reserve, settle: row };
    return true;
  }
  function write(row: LedgerRow): boolean {
    row.at = at;
    if (!note(row)) return false;
    rows.push(row);
    return true;
  }

  for (const row of found) note(row);
  const journal: RowJournal & { keyOf(digest: string): KeyRecord | undefined } = {
    ...inRows(write, () => instance),
    knows: (attempt) => attempts.get(attempt)?.past !== undefined,
    past: (attempt) => attempts.get(attempt)?.past,
    progress({ attempt }, { usage, costNano = null }) {
      heard.set(attempt, { usage, costNano });
    },
    key: (record) => void keys.set(record.digest, record),
    keyOf: (digest) => keys.get(digest) ?? kept.keys.get(digest),
    accounts: {
      get: (id) => put.get(id) ?? kept.accounts.get(id),
      put: (record) => void put.set(record.id, record),
    },
    price: (hash, price) => void (prices.has(hash) || prices.set(hash, price)),
    alive() {},
  };
  return {
    journal,
    open: [...open].map(([attempt, of]) => openRow(attempts.get(attempt)!.past!.reserve, of)),
    rows,
    began: ({ attempt }) => attempts.get(attempt)!.past!.reserve.at,
    heard,
    keys,
    accounts: put,
    prices,
    has: (kind, id) => (kind === "key" ? kept.keys : kept.accounts).has(id),
    telling: (command) => void (at = command.at),
  };
}
