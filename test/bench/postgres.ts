// Compares the ledger in PostgreSQL with the one in a file: the cost of a request for the gateway
// and its database, in one run. The server is Debian's, with its own settings for the flush of a
// commit.
import {
  hasPostgres,
  postgresStoreYaml,
  psql,
  startPostgres,
  type Postgres,
} from "../kit/database/postgres.ts";
import type { Lane } from "./lanes.ts";
import { measure, sample, type Result, type Side } from "./rounds.ts";
import { answered, direct, tollgate, type GateOptions } from "./targets.ts";

/** As in production: a commit is on disk. */
const SETTINGS = ["fsync=on", "shared_buffers=256MB", "max_wal_size=4GB"];

/** Options of a gateway with its own database. */
export async function postgresGate(
  postgres: Postgres,
): Promise<GateOptions & { readonly url: string }> {
  const url = await postgres.database();
  return { store: postgresStoreYaml(url), database: postgres.pid, name: "tollgate postgres", url };
}

export async function besidePostgres(
  side: Side,
  lane: Lane,
  { rounds, warmMs }: { readonly rounds: number; readonly warmMs: number },
): Promise<Result[]> {
  if (!hasPostgres()) return [];
  await using postgres = await startPostgres({ settings: SETTINGS });
  const { port } = side.mock;
  const gates = [
    await tollgate(port, { name: "tollgate sqlite" }),
    await tollgate(port, await postgresGate(postgres)),
  ];
  try {
    for (const gate of gates) await sample(side, { ...lane, ms: warmMs }, gate);
    const targets = lane.direct ? [direct(side.mock), ...gates] : gates;
    return await measure(side, lane, targets, rounds);
  } finally {
    for (const gate of gates) await gate.stop();
  }
}

/**
 * Copies of the rows of one call, from another node, in batches of a thousand. The gateway's folder
 * stays, because it contains the key.
 */
export async function addRowsTo(
  mock: number,
  of: GateOptions & { readonly url: string; readonly dir: string },
  many: number,
): Promise<void> {
  const first = await tollgate(mock, of);
  await answered(first);
  await first.stop();
  const columns =
    "kind, nth, began, at, state, outcome, cost, hold, up, input, cache_read, cache_write_5m, cache_write_1h, output, reasoning, usage, rest".split(
      ", ",
    );
  const terms =
    "key, account, provider, model, credential, frontend, price, how, labels, salt".split(", ");
  await psql(
    of.url,
    `INSERT INTO tollgate.node (id, state, last_heartbeat, lease, n) VALUES ('twins', 'left', '-infinity', '0', ${Math.ceil(many / 1_000)});
     INSERT INTO tollgate.terms (node, id, ${terms.join(", ")})
       SELECT w.epoch, 1, ${terms.map((name) => `e.${name}`).join(", ")} FROM tollgate.terms e, (SELECT epoch FROM tollgate.node WHERE id = 'twins') w LIMIT 1;
     INSERT INTO tollgate.ledger_row (node, n, i, attempt, terms, ${columns.join(", ")})
       SELECT w.epoch, 1 + s.i / 500, (s.i % 500) * 2 + e.kind, 'bench-' || s.i, 1, ${columns.map((name) => `e.${name}`).join(", ")}
       FROM generate_series(0, ${Math.floor(many / 2) - 1}) s(i),
         (SELECT * FROM tollgate.ledger_row WHERE attempt = (SELECT min(attempt) FROM tollgate.ledger_row)) e, (SELECT epoch FROM tollgate.node WHERE id = 'twins') w;
     INSERT INTO tollgate.batch (node, n, at, hash, entries)
       SELECT node, n, clock_timestamp(), sha256(n::text::bytea), count(*) FROM tollgate.ledger_row WHERE node = (SELECT epoch FROM tollgate.node WHERE id = 'twins') GROUP BY 1, 2;
     ANALYZE`,
  );
}
