// Export and import for stores that keep complete rows.
import type {
  AuditedCommand,
  AuditLog,
  JobRecord,
  JobStore,
  LedgerExport,
  LedgerImport,
  LedgerTotal,
  LedgerTransfer,
  TransferredRemainder,
  TransferredRows,
} from "../../plugin/index.ts";
import { wallClock } from "../../lib/time/wall-clock.ts";
import { fromMovedRow, toMovedRow, type LedgerRow } from "../ledger-row.ts";
import { createTotals, isSettledRow } from "../totals.ts";
import { addCheckpointRollups, checkpointOfImport, type CheckpointRollup } from "./checkpoint.ts";
import { LedgerReplay } from "./ledger-replay.ts";
import type { LedgerBackend, RowCheckpoint, TransferBackend } from "./row-backend.ts";
import { replayRow } from "./row-verify.ts";
import { assertSameTotals, COMPARED_TOTALS, TRANSFER_PAGE_ROWS } from "./transfer.ts";

/** Creates export and import of a store that keeps complete rows. */
export const createRowTransfer = (backend: TransferBackend): LedgerTransfer => ({
  openExport: async () => new RowExport(backend),
  openImport: async () => new RowImport(backend, await backend.beginImport()),
});

class RowExport implements LedgerExport {
  readonly #backend: TransferBackend;
  #lock: AsyncDisposable | undefined;

  constructor(backend: TransferBackend) {
    this.#backend = backend;
  }

  async readRows(after: number): Promise<TransferredRows> {
    const compactedUpTo = (await this.#backend.readCheckpoint())?.last ?? 0;
    const rows: LedgerRow[] = [];
    const ended = after < compactedUpTo ? await this.#settledAfter(compactedUpTo) : undefined;
    let next = after;
    for await (const [seq, row] of this.#backend.scanRows(after)) {
      if (rows.length === TRANSFER_PAGE_ROWS)
        return { rows: rows.map(toMovedRow), next, more: true };
      next = seq;
      // A retained reserve without its settle would be an open call.
      if (seq > compactedUpTo || ended!.has(row.attempt)) rows.push(row);
    }
    return { rows: rows.map(toMovedRow), next, more: false };
  }

  /** Returns the calls that have a settle after a row. */
  async #settledAfter(after: number): Promise<ReadonlySet<string>> {
    const attempts = new Set<string>();
    for await (const [, { kind, attempt }] of this.#backend.scanRows(after))
      if (kind === "settle") attempts.add(attempt);
    return attempts;
  }

  async stopWrites(): Promise<void> {
    this.#lock ??= await this.#backend.stopWrites();
  }

  async readRemainder(): Promise<TransferredRemainder> {
    const backend = this.#backend;
    const base = await backend.readCheckpoint();
    const rollups = await backend.readRollups();
    const { meters, openCalls } = await backend.readSnapshot();
    return {
      keys: await backend.readKeys(),
      accounts: await backend.readAccounts(),
      prices: await backend.readPrices(),
      audit: await readAudit(backend.audit),
      meters,
      lastProgress: [...openCalls].flatMap(([attempt, progress]) =>
        progress ? [[attempt, progress.usage, progress.costNano] as const] : [],
      ),
      jobs: await readJobs(backend.jobs),
      shared: await backend.readShared(),
      rollups: base && {
        rows: base.rows,
        since: base.firstAt,
        until: base.lastAt,
        sums: rollups.map(([, quarter, text]) => [quarter, text] as const),
      },
      totals: await readTotals(backend, base?.last ?? 0, rollups),
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#lock?.[Symbol.asyncDispose]();
  }
}

/** Returns the audit log, the oldest entry first. */
async function readAudit(log: AuditLog | undefined): Promise<TransferredRemainder["audit"]> {
  const all: AuditedCommand[] = [];
  for (let page = await log?.list(); page; page = await log!.list({ after: page.next })) {
    all.push(...page.items);
    if (page.next === undefined) break;
  }
  return all.reverse().map(({ outcome, code, ...entry }) => {
    if (outcome === "unknown") return [entry, undefined] as const;
    return [entry, { id: entry.id, at: entry.at, outcome, ...(code && { code }) }] as const;
  });
}

/** Returns all jobs. */
async function readJobs(jobs: JobStore | undefined): Promise<readonly JobRecord[]> {
  const all: JobRecord[] = [];
  for (let page = await jobs?.list({}); page; page = await jobs!.list({}, { after: page.next })) {
    all.push(...page.items);
    if (page.next === undefined) break;
  }
  return all;
}

/** Returns the totals of all rows, including compacted rows. */
async function readTotals(
  backend: LedgerBackend,
  after: number,
  rollups: readonly CheckpointRollup[],
): Promise<readonly LedgerTotal[]> {
  const totals = createTotals(COMPARED_TOTALS);
  addCheckpointRollups(totals, {}, () =>
    rollups.map(([, quarter, text]) => [quarter, text] as const),
  );
  for await (const [, row] of backend.scanRows(after))
    if (isSettledRow(row, undefined)) totals.add(row);
  return totals.totals();
}

class RowImport implements LedgerImport {
  readonly #backend: TransferBackend;
  after: number;

  constructor(backend: TransferBackend, after: number) {
    this.#backend = backend;
    this.after = after;
  }

  async writeRows({ rows, next }: TransferredRows): Promise<void> {
    await this.#backend.importRows(rows.map(fromMovedRow), next);
    this.after = next;
  }

  async finish(rest: TransferredRemainder) {
    const backend = this.#backend;
    const imported = rest.rollups && checkpointOfImport(rest.rollups, wallClock());
    const totals = await readTotals(backend, 0, imported?.rollups ?? []);
    assertSameTotals(totals, rest.totals);
    for (const [entry, end] of rest.audit) {
      await backend.audit?.begin(entry);
      if (end) await backend.audit?.end(end);
    }
    await backend.importRemainder(rest);
    // A new store counts versions from 1.
    for (const job of rest.jobs ?? []) await backend.jobs?.put({ ...job, version: 1 });
    if (imported) {
      const { base, rollups, rollupHash } = imported;
      const windows = (await this.#replay()).compactedWindows(rest.meters);
      const checkpoint: RowCheckpoint = {
        last: 0,
        hash: "",
        ...base,
        rollupHash,
        retained: [],
        windows,
      };
      await backend.putCheckpoint(checkpoint, rollups, (await backend.readSnapshot()).head);
    }
    await backend.finishImport();
    return { head: undefined, totals };
  }

  async #replay(): Promise<LedgerReplay<number>> {
    const replay = new LedgerReplay<number>();
    for await (const entry of this.#backend.scanRows(0))
      await replayRow(this.#backend, replay, entry, 0);
    return replay;
  }

  async [Symbol.asyncDispose](): Promise<void> {}
}
