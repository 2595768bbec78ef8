// What is no row of a call and belongs to the proof all the same: what operators did. It stands in the writing node's chain.
import { all, bytes, type Writing } from "./exact.ts";
import type { Ask, Question } from "./line.ts";
import { fenced } from "./trouble.ts";
import { hashOf, noteLine } from "./rows.ts";
import { newSalt } from "./salts.ts";

/** What is noted, and the statements that go with it. */
export interface Noting {
  readonly notes: readonly Note[];
  readonly with: readonly Question[];
  /** The first of the statements gives no row where it was noted already. */
  readonly once?: boolean;
}

export interface Note {
  readonly kind: "audit" | "ended" | "erased" | "key" | "account";
  readonly id: string;
  readonly at: number;
  readonly text: string;
}

/** In one transaction. Noted twice under one number is noted once: the statement refuses it. */
export async function noted(
  ask: Ask,
  s: string,
  { epoch }: Writing,
  { notes, with: also, once = false }: Noting,
): Promise<{ n: number; head: Buffer }> {
  try {
    const [, rows, ...done] = await all([
      ask({ text: "BEGIN" }),
      ask({
        text: `SELECT state, n, head FROM ${s}.node WHERE epoch = $1 FOR NO KEY UPDATE`,
        values: [epoch],
      }),
      ...also.map((question) => ask(question)),
    ]);
    const [node] = rows!;
    if (node?.["state"] !== "live") return fenced();
    const before = { n: Number(node["n"]), head: bytes(node["head"]!) };
    if (once && done[0]!.length === 0) {
      await ask({ text: "ROLLBACK" });
      return before;
    }
    const salted = notes.map((note) => ({ ...note, salt: newSalt() }));
    const lines = salted.map(({ kind, id, text, salt }) => noteLine(kind, id, text, salt));
    const [n, head] = [before.n + 1, hashOf(before.head, lines)];
    await all([
      ...salted.map(({ kind, id, at, text, salt }, i) =>
        ask({
          text: `INSERT INTO ${s}.note VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`,
          values: [epoch, n, i, kind, id, Math.floor(at), text, salt],
        }),
      ),
      ask({
        text: `UPDATE ${s}.node SET n = $2, head = $3, alive = clock_timestamp() WHERE epoch = $1`,
        values: [epoch, n, head],
      }),
      ask({
        text: `INSERT INTO ${s}.batch (node, n, at, hash, entries) VALUES ($1, $2, clock_timestamp(), $3, 0)`,
        values: [epoch, n, head],
      }),
      ask({ text: "COMMIT" }),
    ]);
    return { n, head };
  } catch (error) {
    await ask({ text: "ROLLBACK" }).catch(() => undefined);
    throw error;
  }
}
