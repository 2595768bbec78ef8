// The same load on a small gateway and on one that has grown: models in the file, keys in the store, rows in the ledger.
import type { ChildProcess } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { lanes } from "./lanes.ts";
import { measure, ratio } from "./rounds.ts";
import { tollgate, type Gate, type GateOptions } from "./targets.ts";

export interface Grown {
  readonly what: string;
  /** CPU a request, grown over small. */
  readonly ratio: number;
}

export async function growth(
  driver: ChildProcess,
  mock: number,
  quick: boolean,
  rounds: number,
): Promise<Grown[]> {
  const lane = lanes(quick ? 0.5 : 1)[0]!;
  const scale = quick ? 10 : 1;
  const [models, keys, rows] = [10_000 / scale, 100_000 / scale, 1_000_000 / scale];
  const dirs: string[] = [];

  async function filled(fill: (db: DatabaseSync) => void): Promise<GateOptions> {
    const dir = await mkdtemp(join(tmpdir(), "tollgate-grown-"));
    dirs.push(dir);
    const first = await tollgate(mock, { dir });
    await answered(first);
    await first.stop();
    const db = new DatabaseSync(join(dir, ".tollgate", "store", "ledger.db"));
    db.exec("BEGIN");
    fill(db);
    db.exec("COMMIT");
    db.close();
    return { dir };
  }

  const cases: [string, GateOptions, GateOptions][] = [
    [`10 → ${models} models`, { models: 10 }, { models }],
    [`1 → ${keys} keys`, {}, await filled((db) => addKeys(db, keys))],
    [`0 → ${rows} ledger rows`, {}, await filled((db) => addRows(db, rows))],
  ];
  const grown: Grown[] = [];
  try {
    for (const [what, small, large] of cases) {
      process.stderr.write(`growth: ${what}\n`);
      const targets = [
        await tollgate(mock, { ...small, name: "small" }),
        await tollgate(mock, { ...large, name: "large" }),
      ];
      const [a, b] = await measure(driver, lane, targets, rounds);
      grown.push({ what, ratio: ratio(b!, a!, (s) => s.cpu) });
      for (const target of targets) await target.stop();
    }
  } finally {
    for (const dir of dirs) await rm(dir, { recursive: true, force: true });
  }
  return grown;
}

async function answered(gate: Gate): Promise<void> {
  const answer = await fetch(`http://127.0.0.1:${gate.port}${gate.path}`, {
    method: "POST",
    headers: { ...gate.headers, "content-type": "application/json" },
    body: JSON.stringify({ model: "up/bench", messages: [{ role: "user", content: "hello" }] }),
  });
  if (!answer.ok) throw new Error(await answer.text());
  await answer.arrayBuffer();
}

/** Twins of the first key under digests that nobody has. */
function addKeys(db: DatabaseSync, count: number): void {
  db.prepare(
    `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
     INSERT INTO key (digest, place, record)
     SELECT printf('%064x', i), 'bench-' || i, json_set(record, '$.digest', printf('%064x', i), '$.id', 'bench' || i)
     FROM n, (SELECT record FROM key LIMIT 1)`,
  ).run(count);
}

/** Twins of the rows that are there, before the first one: the chain of hashes goes on undisturbed. */
function addRows(db: DatabaseSync, count: number): void {
  const columns = (
    db.prepare("SELECT name FROM pragma_table_info('entry')").all() as { name: string }[]
  )
    .map(({ name }) => name)
    .filter((name) => name !== "seq" && name !== "attempt");
  const pairs = Math.floor(
    count / (db.prepare("SELECT count(*) AS n FROM entry").get() as { n: number }).n,
  );
  db.prepare(
    `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
     INSERT INTO entry (seq, attempt, ${columns.join(", ")})
     SELECT -(i * 10 + seq), 'bench-' || i, ${columns.join(", ")} FROM n, (SELECT * FROM entry)`,
  ).run(pairs);
}
