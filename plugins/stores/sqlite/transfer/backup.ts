// Backs up a ledger into one file while the gateway writes, and restores it to a new location.
import { chmodSync, constants, copyFileSync, existsSync, renameSync, rmSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { fail, type LedgerBackup } from "tollgate/plugin";
import { toLedgerSum } from "tollgate/store";
import { readHead } from "../data/chain.ts";
import { readTotals } from "./export.ts";
import { verifyLedger } from "../read/reader.ts";
import { checkVersion } from "../data/schema.ts";

/** Copies the ledger in one read transaction. Later commits are not included. */
export function backup(file: string, to: string): LedgerBackup {
  const db = new DatabaseSync(file, { readOnly: true, timeout: 1_000 });
  try {
    db.prepare("VACUUM INTO ?").run(to);
  } finally {
    db.close();
  }
  return readBackupInfo(to);
}

function readBackupInfo(file: string): LedgerBackup {
  const db = new DatabaseSync(file, { readOnly: true });
  try {
    const erased = db
      .prepare("SELECT hash FROM salted_text WHERE erased_at_seq > 0 ORDER BY hash")
      .all();
    const { seq, hash } = readHead(db);
    return {
      head: { seq, hash },
      total: toLedgerSum(readTotals(db, [])[0]),
      erasedHashes: erased.map((row) => String(row["hash"])),
    };
  } finally {
    db.close();
  }
}

/**
 * Verifies a backup and copies it into place.
 * @param to Path at which the ledger will be opened. It must not exist.
 */
export async function restore(from: string, to: string): Promise<LedgerBackup> {
  if (existsSync(to)) fail("conflict", `A ledger already exists at ${to}.`, { code: "not_empty" });
  const db = new DatabaseSync(from, { readOnly: true });
  try {
    if (checkVersion(db, from) === 0) throw new Error("The file is not a ledger.");
  } finally {
    db.close();
  }
  const [problem, ...more] = (await verifyLedger(from, undefined)).problems;
  if (problem)
    fail(
      "invalid",
      `The backup was changed after it was written: ${problem.path} ${problem.message}${more.length > 0 ? ` And ${more.length} more.` : ""}`,
      { code: "not_as_written" },
    );
  const facts = readBackupInfo(from);
  const half = `${to}.half`;
  try {
    rmSync(half, { force: true });
    copyFileSync(from, half, constants.COPYFILE_EXCL);
    chmodSync(half, 0o600);
    renameSync(half, to);
  } finally {
    rmSync(half, { force: true });
  }
  return facts;
}
