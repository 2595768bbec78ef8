// What is no row of a call and belongs to the proof all the same: what operators did. It stands in the writing node's chain.
import { all, bytes, type Writing } from "./exact.ts";
import type { Ask, Question } from "./line.ts";
import { fenced } from "./trouble.ts";
import { hashOf, lineOf } from "./rows.ts";

/** What is noted, and the statement that goes with it. */
export interface Note {
  readonly kind: "audit" | "ended";
  readonly id: string;
  readonly at: number;
  readonly text: string;
  readonly with: Question;
}

/** In one transaction. Noted twice under one number is noted once: the statement refuses it. */
export async function noted(
  ask: Ask,
  s: string,
  { epoch }: Writing,
  { kind, id, at, text, with: also }: Note,
): Promise<{ n: number; head: Buffer }> {
  try {
    const [, rows, done] = await all([
      ask({ text: "BEGIN" }),
      ask({
        text: `SELECT state, n, head FROM ${s}.node WHERE epoch = $1 FOR NO KEY UPDATE`,
        values: [epoch],
      }),
      ask(also),
    ]);
    const [node] = rows!;
    if (node?.["state"] !== "live") return fenced();
    const before = { n: Number(node["n"]), head: bytes(node["head"]!) };
    if (done!.length === 0) {
      await ask({ text: "ROLLBACK" });
      return before;
    }
    const [n, head] = [before.n + 1, hashOf(before.head, [lineOf([kind, id, text])])];
    await all([
      ask({
        text: `INSERT INTO ${s}.note VALUES ($1, $2, 0, $3, $4, $5, $6)`,
        values: [epoch, n, kind, id, Math.floor(at), text],
      }),
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
