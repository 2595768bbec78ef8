// The hash chain of key and account records. Records can change: a limit is raised, or a key is
// revoked. Each command adds a link, so that changes without a command are detected. A link
// contains the key digest or `account:<id>`, the hash of the record with hashes in place of names,
// and a hash over both and all earlier links.
import { createHash } from "node:crypto";
import type { DatabaseSync } from "node:sqlite";
import type { Problem } from "tollgate/plugin";
import { fromJson, toJson, toJsonText } from "tollgate/store";
import { KEY_NAME_LABEL, accountOwner, type NamedRecord } from "./salted-text.ts";

const sha256 = (...texts: readonly string[]): string => {
  const hash = createHash("sha256");
  for (const text of texts) hash.update(text).update("\n");
  return hash.digest("hex");
};

/** Creates a function that writes the chain link of a record. */
export function createRecordChain(
  db: DatabaseSync,
): (digest: string, hashedRecord: string) => void {
  const last = db.prepare("SELECT hash FROM record_link ORDER BY n DESC LIMIT 1");
  const add = db.prepare("INSERT INTO record_link (digest, sum, hash) VALUES (?, ?, ?)");
  return (digest, hashedRecord) => {
    const sum = sha256(hashedRecord);
    add.run(digest, sum, sha256(String(last.get()?.["hash"] ?? ""), digest, sum));
  };
}

/** Yields records that no command wrote, and links that do not follow each other. */
export function* verifyRecordChain(db: DatabaseSync): Generator<Problem, void> {
  const sums = new Map<string, string>();
  let [before, n] = ["", 0];
  for (const link of db
    .prepare("SELECT n, digest, sum, hash FROM record_link ORDER BY n")
    .iterate()) {
    const [digest, sum, hash] = [String(link["digest"]), String(link["sum"]), String(link["hash"])];
    if (Number(link["n"]) !== ++n || hash !== sha256(before, digest, sum)) {
      yield {
        path: `/record_link/${n}`,
        message: "The records of keys were changed after they were written.",
      };
      n = Number(link["n"]);
    }
    before = hash;
    sums.set(digest, sum);
  }
  const decodeRecord = createRecordDecoder(db);
  for (const { linkId, account, record, hashedRecord } of readRecords(db)) {
    if (sums.get(linkId) !== sha256(hashedRecord) || decodeRecord(hashedRecord, account) !== record)
      yield {
        path: account === undefined ? `/key/${recordId(record) ?? linkId}` : `/account/${account}`,
        message: "The record, including its limits, was changed outside of Tollgate's commands.",
      };
    sums.delete(linkId);
  }
  for (const digest of sums.keys())
    yield { path: `/key/${digest}`, message: "The record was written, but it is missing." };
}

interface ChainedRecord {
  /** The ID in the chain links of the record. */
  readonly linkId: string;
  readonly account: string | undefined;
  readonly record: string;
  readonly hashedRecord: string;
}

function* readRecords(db: DatabaseSync): Generator<ChainedRecord, void> {
  for (const { digest, record, hashed_record } of db
    .prepare("SELECT digest, record, hashed_record FROM key")
    .iterate())
    yield {
      linkId: String(digest),
      account: undefined,
      record: String(record),
      hashedRecord: String(hashed_record),
    };
  // Backups from before accounts existed have no account table.
  const table = db.prepare("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'account'");
  if (!table.get()) return;
  for (const { id, record, hashed_record } of db
    .prepare("SELECT id, record, hashed_record FROM account")
    .iterate())
    yield {
      linkId: accountOwner(String(id)),
      account: String(id),
      record: String(record),
      hashedRecord: String(hashed_record),
    };
}

/**
 * Creates a function that restores a record from its hashed form. It returns undefined if a hash
 * has no text or belongs to another key.
 */
function createRecordDecoder(
  db: DatabaseSync,
): (hashedRecord: string, account: string | undefined) => string | undefined {
  const word = db.prepare("SELECT key, name, text FROM salted_text WHERE hash = ?");
  return (hashedRecord, account) => {
    try {
      const record = fromJson<NamedRecord>(hashedRecord);
      if (account !== undefined && record.id !== accountOwner(account)) return undefined;
      const text = (name: string, its: string): string => {
        const found = word.get(its)!;
        if (found["key"] !== toJsonText(record.id) || found["name"] !== name)
          throw new Error("other");
        return JSON.parse(String(found["text"])) as string;
      };
      const { name, labels } = record;
      if (name !== undefined) record.name = text(KEY_NAME_LABEL, name);
      if (labels !== undefined)
        record.labels = Object.fromEntries(
          Object.entries(labels).map(([of, its]) => [of, text(toJsonText(of), its!)]),
        );
      if (account !== undefined) record.id = account;
      return toJson(record);
    } catch {
      return undefined;
    }
  };
}

function recordId(record: string): string | undefined {
  try {
    const { id } = JSON.parse(record) as { id?: unknown };
    return typeof id === "string" ? id : undefined;
  } catch {
    return undefined;
  }
}
