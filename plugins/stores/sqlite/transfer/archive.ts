// Provides the commits of an archive, as the chain covers them.
import { DatabaseSync } from "node:sqlite";
import type { ArchiveInfo, ArchiveRequest } from "tollgate/plugin";
import { writeArchive, type ArchivedCommit, type SaltedText } from "tollgate/store";
import { readCheckpoint } from "../data/checkpoint.ts";

/**
 * Archives all commits whose entries are older than `before`, starting with the oldest existing
 * commit. It stops at the first commit with a newer entry.
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
