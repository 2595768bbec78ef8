// Backs up a ledger into one file while the gateway writes, and restores it to a new location.
import { chmodSync, constants, copyFileSync, existsSync, renameSync, rmSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { fail, type LedgerBackup, type ArchiveInfo, type ArchiveRequest } from "tollgate/plugin";
import { toLedgerSum, writeArchive, type ArchivedCommit, type SaltedText } from "tollgate/store";
import { readHead } from "../data/chain.ts";
import { readTotals } from "./export.ts";
import { verifyLedger } from "../read/reader.ts";
import { checkVersion } from "../data/schema.ts";
import { readCheckpoint } from "../data/checkpoint.ts";

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

// Provides the commits of an archive, as the chain covers them.

/**
 * Archives all commits whose entries are older than `before`, starting with the oldest existing
 * commit. Archiving stops at the first commit with a newer entry.
 */
export async function archive(
  ledger: string,
  file: string,
  { before, labels }: ArchiveRequest,
): Promise<ArchiveInfo> {
  const db = new DatabaseSync(ledger, { readOnly: true, timeout: 1_000 });
  try {
    db.exec("BEGIN");
    const base = readCheckpoint(db);
    const find = db.prepare("SELECT salt, text FROM salted_text WHERE hash = ?");
    return await writeArchive(file, {
      after: { seq: base?.last ?? 0, hash: base?.hash ?? "" },
      commits: commitsBefore(db, base?.last ?? 0, before),
      findText: labels
        ? (hash) => (find.get(hash) ?? { salt: null, text: null }) as unknown as SaltedText
        : undefined,
    });
  } finally {
    db.close();
  }
}

function* commitsBefore(
  db: DatabaseSync,
  after: number,
  before: number,
): Generator<ArchivedCommit, void> {
  const commits = db.prepare(
    "SELECT s.first, s.last, s.hash, b.instance, b.terms, b.rows, s.max_at " +
      "FROM segment s JOIN batch b ON b.first = s.first WHERE s.first > ? ORDER BY s.id",
  );
  for (const { max_at: latest, ...commit } of commits.iterate(after)) {
    if (Number(latest) >= before) return;
    yield commit as unknown as ArchivedCommit;
  }
}
