// Retention, archives, and erasure for stores that keep complete rows, such as a key-value store.
// The store implements `LedgerBackend`, and this file contains the rest.
import {
  type ArchiveRequest,
  type ErasureRequest,
  type LedgerMaintenance,
  type LedgerState,
  type PrunePlan,
  type PruneProgress,
  fail,
  type PruneResult,
} from "../../plugin/index.ts";
import { wallClock } from "../../lib/time/wall-clock.ts";
import type { LedgerRow } from "../ledger-row.ts";
import { readArchive, writeArchive, type ArchivedCommit, type SaltedText } from "./archive.ts";
import { CheckpointSums, estimatePrune, extendCheckpoint } from "./checkpoint.ts";
import { commitHash, encodeCommit } from "./commit-text.ts";
import { LedgerReplay } from "./ledger-replay.ts";
import { redactRecord, textFilter, hashSalted, toJsonText } from "./salted-text.ts";
import type { LedgerBackend, NumberedRow, RowCheckpoint } from "./row-backend.ts";
import { replayRow } from "./row-verify.ts";

/** Maximum number of rows per checkpoint. */
const MAX_ROWS = 10_000;
/** Approximate compaction speed, in rows per second. */
const ROWS_PER_SECOND = 50_000;

/** Creates the maintenance of a store that keeps complete rows. */
export function createRowMaintenance(
  backend: LedgerBackend,
): Required<
  Pick<LedgerMaintenance, "archive" | "readArchive" | "planPrune" | "prune" | "readState" | "erase">
> {
  const maintenance = new RowMaintenance(backend);
  const readState = () => maintenance.readState();
  return {
    archive: (file, of) => maintenance.archive(file, of),
    readArchive: (file) => readArchive(file),
    planPrune: (before) => maintenance.planPrune(before),
    prune: createPrune(readState, (before, progress) => maintenance.prune(before, progress)),
    readState,
    erase: async (what) => ({ hashes: await maintenance.erase(what) }),
  };
}

class RowMaintenance {
  readonly #backend: LedgerBackend;

  constructor(backend: LedgerBackend) {
    this.#backend = backend;
  }

  async archive(file: string, { before, labels }: ArchiveRequest) {
    const base = await this.#backend.readCheckpoint();
    const after = { seq: base?.last ?? 0, hash: base?.hash ?? "" };
    const texts = new Map<string, SaltedText>();
    return writeArchive(file, {
      after,
      commits: this.#commits(after.seq, after.hash, before, texts),
      findText: labels ? (hash) => texts.get(hash)! : undefined,
    });
  }

  /** Yields each row as a commit. Collects the texts of its labels in `texts`. */
  async *#commits(
    after: number,
    hash: string,
    before: number,
    texts: Map<string, SaltedText>,
  ): AsyncGenerator<ArchivedCommit, void> {
    for await (const [seq, row] of this.#backend.scanRows(after)) {
      if (row.at >= before) return;
      texts.clear();
      const commit = this.#commit(row, texts);
      hash = commitHash(hash, commit);
      yield { ...commit, first: seq, last: seq, hash };
    }
  }

  #commit(row: LedgerRow, texts?: Map<string, SaltedText>) {
    const labels = Object.entries(row.labels).map(([name, text]) => {
      const { hash, ...salted } = this.#saltedText(row.key, name, text!);
      texts?.set(hash, salted);
      return [name, hash] as const;
    });
    return encodeCommit(row.instance, [{ ...row, labels: Object.fromEntries(labels) }]);
  }

  /** Returns the salted hash of a text. The text cannot be guessed without the ledger's secret. */
  #saltedText(owner: string, name: string | null, value: string) {
    const text = toJsonText(value);
    const salt = hashSalted(this.#backend.secret, JSON.stringify([owner, name, value]));
    return { hash: hashSalted(salt, text), salt, text };
  }

  async readState(): Promise<LedgerState> {
    const base = await this.#backend.readCheckpoint();
    let oldestAt: number | undefined;
    for await (const [, row] of this.#backend.scanRows(base?.last ?? 0)) {
      oldestAt = row.at;
      break;
    }
    return {
      bytes: await this.#backend.readBytes(),
      ...(oldestAt !== undefined && { oldestAt }),
      prunedRows: base?.rows ?? 0,
      ...(base && { prunedAt: base.at }),
    };
  }

  async planPrune(before: number): Promise<PrunePlan> {
    const base = await this.#backend.readCheckpoint();
    let [rows, all, firstAt, lastAt] = [0, 0, Infinity, -Infinity];
    let end: NumberedRow | undefined;
    for await (const [seq, row] of this.#backend.scanRows(base?.last ?? 0)) {
      all++;
      if (end || (await this.#isEnd(row, before))) {
        end ??= [seq, row];
        continue;
      }
      rows++;
      firstAt = Math.min(firstAt, row.at);
      lastAt = Math.max(lastAt, row.at);
    }
    return estimatePrune(
      rows === 0 ? undefined : { rows, firstAt, lastAt },
      { rows: all, bytes: await this.#backend.readBytes() },
      ROWS_PER_SECOND,
      end && end[1].at < before ? end[1] : undefined,
    );
  }

  async prune(before: number, progress: (of: PruneProgress) => void) {
    let rows = 0;
    let longestStepMs = 0;
    for (;;) {
      const base = await this.#backend.readCheckpoint();
      const range: NumberedRow[] = [];
      for await (const [seq, row] of this.#backend.scanRows(base?.last ?? 0)) {
        if (range.length === MAX_ROWS || (await this.#isEnd(row, before))) break;
        range.push([seq, row]);
      }
      if (range.length === 0) return { rows, longestStepMs };
      const compaction = await this.#compaction(base, range);
      const began = performance.now();
      const done = await this.#backend.putCheckpoint(...compaction);
      longestStepMs = Math.max(longestStepMs, performance.now() - began);
      if (!done) continue;
      rows += range.length;
      progress({ rows, total: rows });
    }
  }

  /** Whether compaction stops before this row. No row is removed from the oldest open call on. */
  async #isEnd(row: LedgerRow, before: number): Promise<boolean> {
    return (
      row.at >= before || (row.kind === "reserve" && (await this.#backend.isOpen(row.attempt)))
    );
  }

  async #compaction(
    base: RowCheckpoint | undefined,
    rows: readonly NumberedRow[],
  ): Promise<Parameters<LedgerBackend["putCheckpoint"]>> {
    const { head } = await this.#backend.readSnapshot();
    const [last] = rows.at(-1)!;
    const sums = new CheckpointSums();
    let hash = base?.hash ?? "";
    for (const [, row] of rows) {
      hash = commitHash(hash, this.#commit(row));
      if (row.kind !== "reserve") sums.add(row);
    }
    const rollups = sums.rollups(base?.rollups ?? 0, base?.rollupHash ?? "");
    const times = rows.map(([, { at }]) => at);
    const checkpoint: RowCheckpoint = {
      last,
      hash,
      ...extendCheckpoint(base, {
        firstAt: Math.min(...times),
        lastAt: Math.max(...times),
        rows: rows.length,
        at: wallClock(),
        rollups: rollups.length,
      }),
      rollupHash: rollups.at(-1)?.[3] ?? base?.rollupHash ?? "",
      retained: await this.#retained(base, rows),
      ...(await this.#windows(base, rows)),
    };
    return [checkpoint, rollups, head];
  }

  /** Returns the usage of windows, and the open jobs, after the rows and those compacted before. */
  async #windows(
    base: RowCheckpoint | undefined,
    rows: readonly NumberedRow[],
  ): Promise<Pick<RowCheckpoint, "windows" | "jobs">> {
    const replay = new LedgerReplay<number>(base?.windows, base?.jobs);
    for await (const entry of this.#backend.scanRows(0)) {
      if (entry[0] > rows.at(-1)![0]) break;
      await replayRow(this.#backend, replay, entry, base?.last ?? 0);
    }
    const latest = rows.reduce((at, [, row]) => Math.max(at, row.at), 0);
    const jobs = replay.openJobs();
    return {
      windows: replay.liveWindows(latest).map(([id, level]) => [id, String(level)]),
      ...(jobs.length > 0 && { jobs }),
    };
  }

  /**
   * Returns the reserves, including those that were retained before, whose calls have later rows.
   */
  async #retained(
    base: RowCheckpoint | undefined,
    rows: readonly NumberedRow[],
  ): Promise<readonly number[]> {
    const reserves = rows.filter(([, { kind }]) => kind === "reserve");
    for await (const entry of this.#backend.scanRows(0)) {
      if (entry[0] > (base?.last ?? 0)) break;
      reserves.push(entry);
    }
    const attempts = reserves.map(([, { attempt }]) => attempt);
    const continued = await this.#backend.findContinued(attempts, rows.at(-1)![0]);
    return reserves.flatMap(([seq, { attempt }]) => (continued.has(attempt) ? [seq] : []));
  }

  async erase(what: ErasureRequest): Promise<string[]> {
    const gone = new Set<string>();
    const matches =
      (kind: "key" | "account", owner: string) => (name: string | null, text: string) => {
        const filter = textFilter(what, kind, owner);
        if (filter && !filter(name, text)) return false;
        const { hash } = this.#saltedText(owner, name, text);
        if ("hashes" in what && !what.hashes.includes(hash)) return false;
        gone.add(hash);
        return true;
      };
    for await (const [seq, { key, labels }] of this.#backend.scanRows(0)) {
      const redacted = redactRecord({ labels }, matches("key", key));
      if (redacted) await this.#backend.setLabels(seq, redacted.labels);
    }
    for (const record of await this.#backend.readKeys()) {
      const redacted = redactRecord(record, matches("key", record.id));
      if (redacted) await this.#backend.putKey(redacted);
    }
    for (const record of await this.#backend.readAccounts()) {
      const redacted = redactRecord(record, matches("account", record.id));
      // The change increments the version, like any other change.
      if (redacted) await this.#backend.putAccount({ ...redacted, version: record.version + 1 });
    }
    return [...gone];
  }
}

// Runs one prune at a time and reports the freed space.

/**
 * Creates `prune` of a store's maintenance.
 * @param run Compacts the rows.
 */
export function createPrune(
  readState: () => Promise<LedgerState>,
  run: (
    before: number,
    progress: (of: PruneProgress) => void,
  ) => Promise<Pick<PruneResult, "rows" | "longestStepMs">>,
): NonNullable<LedgerMaintenance["prune"]> {
  let running: Promise<PruneResult> | undefined;
  async function prune(
    before: number,
    progress: (of: PruneProgress) => void,
  ): Promise<PruneResult> {
    const { bytes } = await readState();
    const done = await run(before, progress);
    const now = await readState();
    return { ...done, bytes: Math.max(0, bytes - now.bytes), rowsSince: now.oldestAt };
  }
  return async (before, progress = () => {}) => {
    if (running)
      return fail("conflict", "Ledger pruning is already running.", { code: "prune_under_way" });
    return (running = prune(before, progress).finally(() => (running = undefined)));
  };
}
