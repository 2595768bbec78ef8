// One ledger, one owner. The lock is SQLite's own, on an empty file beside the ledger: the system drops it when the
// process dies, however it dies, and it works wherever SQLite does.
import { closeSync, openSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";

/** SQLite's own: another connection has it. Nothing is broken. */
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
      `The ledger ${file} is in use${describeOwner(file)}. One ledger has one gateway.`,
      {
        cause: error,
      },
    );
  }
  return { release: () => db.close() };
}

/** What the last owner said of itself. */
function describeOwner(file: string): string {
  try {
    const db = new DatabaseSync(file, { readOnly: true });
    const last = db.prepare("SELECT pid, started FROM instance ORDER BY epoch DESC LIMIT 1").get();
    db.close();
    if (last)
      return ` by process ${last["pid"]}, which opened it at ${new Date(Number(last["started"])).toISOString()}`;
  } catch {
    // A ledger that cannot be read now says nothing of its owner.
  }
  return " by another process";
}
