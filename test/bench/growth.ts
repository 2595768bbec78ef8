// Compares the same load on a small gateway and on a large one: with models in the file, keys and
// accounts in the store, rows in the ledger, and silent open streams.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { hasPostgres, startPostgres } from "../kit/database/postgres.ts";
import type { Lane } from "./lanes.ts";
import { addRowsTo, postgresGate } from "./postgres.ts";
import { measure, type Result, type Side } from "./rounds.ts";
import { held } from "./held-streams.ts";
import { answered, tollgate, type GateOptions } from "./targets.ts";

export interface Grown {
  readonly what: string;
  readonly small: Result;
  readonly large: Result;
}

export async function growth(
  side: Side,
  lane: Lane,
  { rounds, share }: { rounds: number; share: number },
): Promise<Grown[]> {
  const [models, keys, accounts] = [10_000 * share, 100_000 * share, 10_000 * share];
  const rows = 1_000_000 * share;
  const mock = side.mock.port;
  const dirs: string[] = [];
  const ends: AsyncDisposable[] = [];

  async function folder(): Promise<string> {
    const dir = await mkdtemp(join(tmpdir(), "tollgate-grown-"));
    dirs.push(dir);
    return dir;
  }
  async function filled(fill: (db: DatabaseSync) => void): Promise<GateOptions> {
    const dir = await folder();
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

  const count = (n: number) => n.toLocaleString("en");
  type Pair = readonly [GateOptions, GateOptions & { readonly streams?: number }];
  type Case = readonly [string, () => Promise<Pair>];
  const cases: Case[] = [
    [`10 → ${count(models)} models`, async () => [{ models: 10 }, { models }]],
    [
      `10 → ${count(keys)} keys`,
      async () => [await filled((db) => addKeys(db, 9)), await filled((db) => addKeys(db, keys))],
    ],
    [
      `1 → ${count(accounts)} accounts`,
      async () => [
        await filled((db) => addAccounts(db, 1)),
        await filled((db) => addAccounts(db, accounts)),
      ],
    ],
    ["0 → 1,000 open streams", async () => [{}, { streams: 1_000 }]],
    ...[rows, 10 * rows].map((many): Case => [
      `0 → ${count(many)} ledger rows`,
      async () => [{}, await filled((db) => addRows(db, many))],
    ]),
    ...(hasPostgres()
      ? [rows, 10 * rows].map((many): Case => [
          `0 → ${count(many)} ledger rows in PostgreSQL`,
          async () => {
            await using stack = new AsyncDisposableStack();
            const postgres = stack.use(await startPostgres());
            const sides = [
              await postgresGate(postgres),
              { ...(await postgresGate(postgres)), dir: await folder() },
            ] as const;
            await addRowsTo(mock, sides[1], many);
            ends.push(stack.move());
            return [sides[0], sides[1]];
          },
        ])
      : []),
  ];
  const grown: Grown[] = [];
  try {
    for (const [what, made] of cases) {
      process.stderr.write(`  ${what}\n`);
      const [small, large] = await made();
      const targets = [
        await tollgate(mock, { ...small, name: "small" }),
        await tollgate(mock, { ...large, name: "large" }),
      ];
      const beside = large.streams ? await held(targets[1]!, large.streams) : undefined;
      try {
        const [a, b] = await measure(side, lane, targets, rounds);
        grown.push({ what, small: a!, large: b! });
      } finally {
        await beside?.[Symbol.asyncDispose]();
        for (const target of targets) await target.stop();
        for (const end of ends.splice(0)) await end[Symbol.asyncDispose]();
      }
    }
  } finally {
    for (const dir of dirs) await rm(dir, { recursive: true, force: true });
  }
  return grown;
}

/** Copies of the first key with hashes that no client has. */
function addKeys(db: DatabaseSync, count: number): void {
  db.prepare(
    `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
     INSERT INTO key (digest, sort_key, record, hashed_record)
     SELECT printf('%064x', i), substr(sort_key, 1, instr(sort_key, ':')) || printf('%064x', i), json_set(record, '$.digest', printf('%064x', i), '$.id', 'bench' || i), hashed_record
     FROM n, (SELECT sort_key, record, hashed_record FROM key LIMIT 1)`,
  ).run(count);
}

/** The client's key is in the first of these accounts, which has a budget like the others. */
function addAccounts(db: DatabaseSync, count: number): void {
  db.prepare(
    `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
     INSERT INTO account (id, record, hashed_record)
     SELECT id, json, json FROM (
       SELECT 'bench-' || i AS id, json_object('id', 'bench-' || i, 'created', 0, 'version', 1, 'limits',
         json_array(json_object('scope', 'account:bench-' || i, 'unit', 'requests', 'max', 1000000000, 'per', 'month'))) AS json FROM n)`,
  ).run(count);
  db.exec("UPDATE key SET record = json_set(record, '$.account', 'bench-1')");
}

/**
 * Copies of existing entries before the first one, with their lookups. The hash chain remains
 * valid.
 */
function addRows(db: DatabaseSync, count: number): void {
  const there = db.prepare("SELECT count(*) AS n FROM entry").get() as { n: number };
  const twins = Math.floor(count / there.n);
  const times = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)";
  for (const insert of [
    "batch SELECT -(i * 10 + first), instance, terms, rows FROM n, (SELECT * FROM batch)",
    "call SELECT 'bench-' || i || attempt, -(i * 10 + first) FROM n, (SELECT * FROM call)",
    "closed_call SELECT -(i * 10 + reserve), -(i * 10 + first) FROM n, (SELECT * FROM closed_call)",
  ])
    db.prepare(`${times} INSERT INTO ${insert}`).run(twins);
}
