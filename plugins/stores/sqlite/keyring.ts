// Keys are rows that change: a limit is raised, a key is revoked. So that a change which no command made is seen, each command
// leaves a link of a chain: which key, the sum of its record, and a hash over both and all links before.
import { createHash } from "node:crypto";
import type { DatabaseSync } from "node:sqlite";
import type { Problem } from "tollgate/plugin";

const sha = (...texts: readonly string[]): string => {
  const hash = createHash("sha256");
  for (const text of texts) hash.update(text).update("\n");
  return hash.digest("hex");
};

/** Writes the link of a record that is written. */
export function createKeyring(db: DatabaseSync): (digest: string, record: string) => void {
  const last = db.prepare("SELECT hash FROM keyed ORDER BY n DESC LIMIT 1");
  const add = db.prepare("INSERT INTO keyed (digest, sum, hash) VALUES (?, ?, ?)");
  return (digest, record) => {
    const sum = sha(record);
    add.run(digest, sum, sha(String(last.get()?.["hash"] ?? ""), digest, sum));
  };
}

/** Keys whose record no command wrote, and links that do not follow on one another. */
export function* checkKeys(db: DatabaseSync): Generator<Problem, void> {
  const sums = new Map<string, string>();
  let [before, n] = ["", 0];
  for (const link of db.prepare("SELECT n, digest, sum, hash FROM keyed ORDER BY n").iterate()) {
    const [digest, sum, hash] = [String(link["digest"]), String(link["sum"]), String(link["hash"])];
    if (Number(link["n"]) !== ++n || hash !== sha(before, digest, sum)) {
      yield { path: `/keyed/${n}`, message: "What was written of keys was changed afterwards." };
      n = Number(link["n"]);
    }
    before = hash;
    sums.set(digest, sum);
  }
  for (const row of db.prepare("SELECT digest, record FROM key").iterate()) {
    const [digest, record] = [String(row["digest"]), String(row["record"])];
    if (sums.get(digest) !== sha(record))
      yield {
        path: `/key/${idOf(record) ?? digest}`,
        message: "Its record, limits included, is not what a command wrote.",
      };
    sums.delete(digest);
  }
  for (const digest of sums.keys())
    yield { path: `/key/${digest}`, message: "It was written, and it is not there." };
}

function idOf(record: string): string | undefined {
  try {
    const { id } = JSON.parse(record) as { id?: unknown };
    return typeof id === "string" ? id : undefined;
  } catch {
    return undefined;
  }
}
