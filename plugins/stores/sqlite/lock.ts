// Ensures that a ledger has only one owner. The lock is an SQLite lock on an empty file next to the
// ledger. The operating system releases it when the process dies, and it works on every file system
// that SQLite supports.
import { closeSync, openSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";

/** SQLite error code for a lock that another connection holds. The file is not damaged. */
export const SQLITE_BUSY = 5;

export function lockLedger(file: string): { release(): void } {
  closeSync(openSync(`${file}.lock`, "a", 0o600));
  const db = new DatabaseSync(`${file}.lock`);
  try {
    db.exec("BEGIN EXCLUSIVE");
  } catch (error) {
    db.close();
    if ((error as { errcode?: number }).errcode !== SQLITE_BUSY) throw error;
    throw new Error(
      `The ledger ${file} is in use${describeOwner(file)}. Only one gateway can use a ledger.`,
      {
        cause: error,
      },
    );
  }
  return { release: () => db.close() };
}

/** Returns a description of the last owner from the ledger. */
function describeOwner(file: string): string {
  try {
    const db = new DatabaseSync(file, { readOnly: true });
    const last = db.prepare("SELECT pid, started FROM instance ORDER BY epoch DESC LIMIT 1").get();
    db.close();
    if (last)
      return ` by process ${last["pid"]}, which opened it at ${new Date(Number(last["started"])).toISOString()}`;
  } catch {
    // The ledger cannot be read at the moment, so the owner is unknown.
  }
  return " by another process";
}
