// Ledger maintenance: archives, compaction, and erasure. Each task uses its own connection.
import type { LedgerMaintenance, LedgerState } from "tollgate/plugin";
import { createPrune, readArchive } from "tollgate/store";
import { archive } from "./archive.ts";
import { readCheckpoint } from "./checkpoint.ts";
import { erase } from "./erasure.ts";
import { planCompaction } from "./compaction.ts";
import type { RunSql } from "../connection/pipelined-connection.ts";
import { runCompaction } from "./compaction-run.ts";
import type { Writer } from "../writer-interface.ts";

/**
 * @param withConnection Runs work on a connection for long tasks.
 */
export function createLedgerMaintenance(
  withConnection: <T>(work: (sql: RunSql) => Promise<T>) => Promise<T>,
  sql: RunSql,
  schema: string,
  size: () => Promise<{ bytes?: number | undefined; oldestAt?: number | undefined }>,
  numbered: (sql: RunSql) => Promise<void>,
  writer: Pick<Writer, "appendNotes" | "refreshLabels">,
): LedgerMaintenance {
  async function readState(): Promise<LedgerState> {
    const [base, { bytes = 0, oldestAt }] = [await readCheckpoint(sql, schema), await size()];
    return {
      bytes,
      ...(oldestAt !== undefined && { oldestAt }),
      prunedRows: base?.rows ?? 0,
      ...(base && { prunedAt: base.at }),
    };
  }
  return {
    alternatives: {
      backup: `Back up the database with pg_dump --schema=${schema}, or with a base backup and its WAL. tollgate store copy creates one file with the ledger.`,
      restore:
        "Restore the output of pg_dump with pg_restore into a database that no gateway " +
        "uses, and start a gateway on it.",
    },
    archive: (file, of) =>
      withConnection(async (sql) => {
        await numbered(sql);
        return archive(sql, schema, file, of);
      }),
    readArchive: (file) => readArchive(file),
    planPrune: (before) =>
      withConnection(async (sql) => {
        await numbered(sql);
        return planCompaction(sql, schema, before, (await size()).bytes ?? 0);
      }),
    prune: createPrune(readState, (before, progress) =>
      withConnection((own) => runCompaction(own, schema, before, progress)),
    ),
    erase: (what) => withConnection((sql) => erase(sql, schema, writer, what)),
    readState,
  };
}
