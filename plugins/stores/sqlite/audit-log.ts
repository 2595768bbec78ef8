// The audit log of operator commands. Each record is a note in the hash chain and a row in table
// `audit`. The row is searchable and is kept when the chain is compacted. The checkpoint contains a
// hash over the rows whose notes were removed.
import { hash } from "node:crypto";
import type { DatabaseSync } from "node:sqlite";
import type {
  AuditedCommand,
  AuditEnd,
  AuditEntry,
  PageRequest,
  Problem,
  ResultPage,
} from "tollgate/plugin";
import { toAuditedCommand, toPage, pageSize } from "tollgate/store";
import type { LedgerSession } from "./write/ledger-session.ts";
import type { Checkpoint } from "./data/checkpoint.ts";

/** Appends a note and a row in one commit. */
export function appendAudit(session: LedgerSession, entry: AuditEntry | AuditEnd): void {
  session.runStep((db, journal) => {
    const seq = journal.appendNote(entry.at, { audit: entry });
    db.prepare("INSERT INTO audit (seq, id, is_end, text) VALUES (?, ?, ?, ?)").run(
      seq,
      entry.id,
      "outcome" in entry ? 1 : 0,
      JSON.stringify(entry),
    );
  });
}

/** Lists operator commands, newest first. */
export function listAudit(db: DatabaseSync, page?: PageRequest): ResultPage<AuditedCommand> {
  const size = pageSize(page);
  const found = db
    .prepare(
      "SELECT seq, text, (SELECT text FROM audit e WHERE e.id = audit.id AND e.is_end = 1 LIMIT 1) AS ended " +
        "FROM audit WHERE is_end = 0 AND seq < ? ORDER BY seq DESC LIMIT ?",
    )
    .all(Number(page?.after ?? Number.MAX_SAFE_INTEGER), size + 1)
    .map((row) => {
      const entry = JSON.parse(String(row["text"])) as AuditEntry;
      const ended = row["ended"];
      const end = typeof ended === "string" ? (JSON.parse(ended) as AuditEnd) : undefined;
      return { seq: Number(row["seq"]), item: toAuditedCommand(entry, end) };
    });
  const { items, next } = toPage(found, size, ({ seq }) => String(seq));
  return { items: items.map(({ item }) => item), next };
}

const auditHash = (before: string, seq: number, text: string): string =>
  hash("sha256", `${before}\n${seq}\n${text}`);

type CompactedAudit = NonNullable<Checkpoint["audit"]>;

/**
 * Returns the count and hash of the audit rows up to entry `last`, continuing from the checkpoint
 * `base`.
 */
export function compactedAuditUpTo(
  db: DatabaseSync,
  last: number,
  base: Checkpoint | undefined,
): CompactedAudit {
  let { count, hash: sum } = base?.audit ?? { count: 0, hash: "" };
  const rows = db.prepare("SELECT seq, text FROM audit WHERE seq > ? AND seq <= ? ORDER BY seq");
  for (const row of rows.iterate(base?.last ?? 0, last)) {
    sum = auditHash(sum, Number(row["seq"]), String(row["text"]));
    count++;
  }
  return { count, hash: sum };
}

/** Compares the audit rows with the notes in the chain, in order. */
export class AuditLogVerifier {
  readonly #db: DatabaseSync;
  readonly #last: number;
  readonly #problems: Problem[] = [];
  #noteCount = 0;

  constructor(db: DatabaseSync, base: Checkpoint | undefined) {
    this.#db = db;
    this.#last = base?.last ?? 0;
    const { count, hash: sum } = base?.audit ?? { count: 0, hash: "" };
    const now = compactedAuditUpTo(db, this.#last, undefined);
    if (now.count !== count || now.hash !== sum)
      this.#addProblem("The audit log was changed after it was written.");
  }

  addNote(seq: number, entry: AuditEntry | AuditEnd): void {
    this.#noteCount++;
    const found = this.#db.prepare("SELECT id, is_end, text FROM audit WHERE seq = ?").get(seq);
    const isEnd = "outcome" in entry ? 1 : 0;
    if (
      found?.["text"] !== JSON.stringify(entry) ||
      found["id"] !== entry.id ||
      found["is_end"] !== isEnd
    )
      this.#addProblem(`The audit record of entry ${seq} differs from the entry.`);
  }

  problems(): readonly Problem[] {
    const row = this.#db.prepare("SELECT count(*) AS n FROM audit WHERE seq > ?").get(this.#last);
    if (Number(row?.["n"]) !== this.#noteCount)
      this.#addProblem("The audit log has more records than were written.");
    return this.#problems;
  }

  #addProblem(message: string): void {
    this.#problems.push({ path: "/audit", message });
  }
}
