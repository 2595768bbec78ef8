// A note is a chain record that is not a row of a call, for example an operator command. It is part
// of the chain of the node that writes it.
import { hashBatch, noteChainLine, createSalt } from "tollgate/store";
import { parseBytea, type NodePosition } from "../write/slow-path.ts";
import { awaitAll } from "../connection/await-all.ts";
import type { RunSql, SqlQuery } from "../connection/pipelined-connection.ts";
import { failFenced } from "../connection/errors.ts";

/** Notes to append, with statements that run in the same transaction. */
export interface NoteWrite {
  readonly notes: readonly ChainNote[];
  readonly statements: readonly SqlQuery[];
  /**
   * Whether the first statement returns no row if the notes were already written. The write is then
   * rolled back.
   */
  readonly isOnce?: boolean;
}

export interface ChainNote {
  readonly kind: "audit" | "audit_end" | "erased" | "key" | "account";
  readonly id: string;
  readonly at: number;
  readonly text: string;
}

/** Appends notes in one transaction. With `isOnce`, a repeated write has no effect. */
export async function appendNotes(
  sql: RunSql,
  schema: string,
  { epoch }: NodePosition,
  { notes, statements: also, isOnce = false }: NoteWrite,
): Promise<{ n: number; head: Buffer }> {
  try {
    const [, rows, ...done] = await awaitAll([
      sql({ text: "BEGIN" }),
      sql({
        text: `SELECT state, n, head FROM ${schema}.node WHERE epoch = $1 FOR NO KEY UPDATE`,
        values: [epoch],
      }),
      ...also.map((question) => sql(question)),
    ]);
    const [node] = rows!;
    if (node?.["state"] !== "live") return failFenced();
    const before = { n: Number(node["n"]), head: parseBytea(node["head"]!) };
    if (isOnce && done[0]!.length === 0) {
      await sql({ text: "ROLLBACK" });
      return before;
    }
    const salted = notes.map((note) => ({ ...note, salt: createSalt() }));
    const lines = salted.map(({ kind, id, text, salt }) => noteChainLine(kind, id, text, salt));
    const [n, head] = [before.n + 1, hashBatch(before.head, lines)];
    await awaitAll([
      ...salted.map(({ kind, id, at, text, salt }, i) =>
        sql({
          text: `INSERT INTO ${schema}.note VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`,
          values: [epoch, n, i, kind, id, Math.floor(at), text, salt],
        }),
      ),
      sql({
        text: `UPDATE ${schema}.node SET n = $2, head = $3, last_heartbeat = clock_timestamp() WHERE epoch = $1`,
        values: [epoch, n, head],
      }),
      sql({
        text: `INSERT INTO ${schema}.batch (node, n, at, hash, entries) VALUES ($1, $2, clock_timestamp(), $3, 0)`,
        values: [epoch, n, head],
      }),
      sql({ text: "COMMIT" }),
    ]);
    return { n, head };
  } catch (error) {
    await sql({ text: "ROLLBACK" }).catch(() => undefined);
    throw error;
  }
}
