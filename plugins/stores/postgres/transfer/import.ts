// Imports the ledger of another store. Rows keep their times and instances; each instance becomes a
// node with its own chain. A node named "move" is live until the import is complete. No gateway can
// open the store before that.
import {
  fail,
  type LedgerImport,
  type TransferredRemainder,
  type TransferredRows,
} from "tollgate/plugin";
import {
  decodeColumns,
  fromMovedRow,
  LedgerReplay,
  type ColumnRow,
  type LedgerRow,
  hashBatch,
  COMPARED_TOTALS,
  assertSameTotals,
  splitByInstance,
} from "tollgate/store";
import { ImportMetadata, appendToChain, IMPORT_NODE, type NodeChain } from "./import-metadata.ts";
import { importJobs } from "../membership/job-table.ts";
import { nodeJoinSql, ROW_SELECT_SQL } from "../rows/row-sql.ts";
import { parseBytea } from "../write/slow-path.ts";
import { awaitAll } from "../connection/await-all.ts";
import type { RunSql } from "../connection/pipelined-connection.ts";
import { textArray } from "../connection/array-literal.ts";
import { assignNumbers, updateRollups } from "../read/store-reads.ts";
import { plannedRowLine, insertRowsQueries, TermsCache } from "../rows/call-terms.ts";
import { readTotals } from "../read/totals.ts";

/** Returns whether an import has begun and is not finished. */
export async function isImporting(sql: RunSql, schema: string): Promise<boolean> {
  const [row] = await sql({
    text: `SELECT EXISTS (SELECT 1 FROM ${schema}.node WHERE id = $1 AND state = 'live')::text AS moving`,
    values: [IMPORT_NODE],
  });
  return row!["moving"] === "true";
}

export const failUnfinishedImport = (): never =>
  fail(
    "conflict",
    "An earlier import into this database is incomplete. Run tollgate store copy " +
      "again, or drop its schema.",
    { code: "moving" },
  );

/**
 * @param end Closes the connection.
 */
export async function openImport(
  sql: RunSql,
  schema: string,
  end: () => Promise<void>,
): Promise<LedgerImport> {
  const moved = new LedgerImporter(sql, schema, end);
  await moved.begin();
  return moved;
}

/** A node whose rows are imported. */
interface ImportedNode extends NodeChain {
  readonly terms: TermsCache;
}

class LedgerImporter implements LedgerImport {
  after = 0;
  readonly #sql: RunSql;
  readonly #schema: string;
  readonly #closeConnection: () => Promise<void>;
  readonly #metadata: ImportMetadata;
  readonly #chains = new Map<string, ImportedNode>();
  /** Start times of calls that are not settled yet. */
  readonly #openCalls = new Map<string, number>();

  constructor(sql: RunSql, schema: string, end: () => Promise<void>) {
    this.#sql = sql;
    this.#schema = schema;
    this.#closeConnection = end;
    this.#metadata = new ImportMetadata(schema);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#closeConnection();
  }

  async begin(): Promise<void> {
    const [sql, schema] = [this.#sql, this.#schema];
    const nodes = await sql({
      text: `SELECT epoch, id, info, state, n, head,
        (SELECT coalesce(max(t.id), 0) FROM ${schema}.terms t WHERE t.node = w.epoch) AS last FROM ${schema}.node w`,
    });
    const mover = nodes.find(({ id, state }) => id === IMPORT_NODE && state === "live");
    if (!mover && nodes.length > 0)
      fail("conflict", "The database already contains a ledger.", { code: "not_empty" });
    if (!mover) {
      await sql({
        text: `INSERT INTO ${schema}.node (id, info, lease) VALUES ($1, '{"after":0}', '1000 years')`,
        values: [IMPORT_NODE],
      });
      return this.begin();
    }
    this.after = (JSON.parse(mover["info"]!) as { after: number }).after;
    for (const node of nodes)
      this.#chains.set(node["id"]!, {
        epoch: Number(node["epoch"]),
        n: Number(node["n"]),
        head: parseBytea(node["head"]!),
        terms: new TermsCache(Number(node["last"])),
      });
    for (const row of await sql({ text: `SELECT attempt, started_at FROM ${schema}.open_call` }))
      this.#openCalls.set(row["attempt"]!, Number(row["started_at"]));
  }

  async writeRows({ rows, next }: TransferredRows): Promise<void> {
    const schema = this.#schema;
    await this.#inTransaction(async (sql) => {
      const began = await this.#callStarts(sql, rows.map(fromMovedRow));
      for (const month of new Set([...began.values()].map(monthStart)))
        await sql({ text: `SELECT ${schema}.create_partition_1($1)`, values: [month] });
      for (const some of splitByInstance(rows.map(fromMovedRow)))
        await this.#writeBatch(sql, some, began);
      const open = rows.filter(({ kind }) => kind === "reserve").map(({ attempt }) => attempt);
      const over = rows.filter(({ kind }) => kind === "settle").map(({ attempt }) => attempt);
      await sql({
        text: `INSERT INTO ${schema}.open_call (attempt, node, started_at, job)
          SELECT e.attempt, e.node, e.started_at, e.how::json ->> 'job' FROM ${schema}.entry e WHERE e.attempt = ANY ($1::text[]) AND e.kind = 0`,
        values: [textArray(open)],
      });
      await sql({
        text: `DELETE FROM ${schema}.open_call WHERE attempt = ANY ($1::text[])`,
        values: [textArray(over)],
      });
      await sql({
        text: `UPDATE ${schema}.node SET info = $2 WHERE id = $1`,
        values: [IMPORT_NODE, JSON.stringify({ after: next })],
      });
      for (const attempt of over) this.#openCalls.delete(attempt);
    });
    this.after = next;
  }

  async finish(rest: TransferredRemainder) {
    const schema = this.#schema;
    const totals = await this.#inTransaction(async (sql) => {
      await this.#metadata.writeRecords(sql, rest);
      await importJobs(sql, schema, rest.jobs ?? []);
      await this.#writeLineAmounts(sql);
      await this.#metadata.writeMeters(sql, rest);
      await this.#metadata.writeCheckpoint(sql, rest);
      const all = await readTotals(sql, schema, { by: COMPARED_TOTALS });
      assertSameTotals(all, rest.totals);
      await sql({
        text: `UPDATE ${schema}.node SET state = 'left' WHERE id = $1`,
        values: [IMPORT_NODE],
      });
      await sql({
        text: `UPDATE ${schema}.change_counter SET keys = keys + 1, accounts = accounts + 1, changed = clock_timestamp()`,
      });
      return all;
    });
    await assignNumbers(this.#sql, schema);
    await updateRollups(this.#sql, schema);
    const [chain] = await this.#sql({
      text: `SELECT encode(head, 'hex') AS head FROM ${schema}.chain`,
    });
    return { head: chain!["head"]!, totals };
  }

  /** Finds what the lines of open jobs took, from the rows of each job. */
  async #writeLineAmounts(sql: RunSql): Promise<void> {
    const schema = this.#schema;
    const open = await sql({ text: `SELECT attempt FROM ${schema}.open_call WHERE job = attempt` });
    for (const { attempt } of open) {
      const replay = new LedgerReplay<undefined>();
      const rows = await sql({
        text: `SELECT ${ROW_SELECT_SQL} FROM ${schema}.entry e ${nodeJoinSql(schema)}
          WHERE e.how IS NOT NULL AND e.how::json ->> 'job' = $1 ORDER BY e.attempt <> $1, e.kind`,
        values: [attempt!],
      });
      for (const found of rows) {
        const row = decodeColumns(found as ColumnRow);
        if (row.kind === "reserve") replay.reserve(row, undefined);
        else if (row.kind === "settle") replay.settle(row);
      }
      for (const [job, amounts] of replay.openJobs())
        await sql({
          text: `UPDATE ${schema}.open_call SET line_amounts = $2 WHERE attempt = $1`,
          values: [job, JSON.stringify(amounts)],
        });
    }
  }

  /** Runs work in one transaction. If it fails, it is rolled back and can be repeated. */
  async #inTransaction<T>(work: (sql: RunSql) => Promise<T>): Promise<T> {
    try {
      await this.#sql({ text: "BEGIN" });
      await this.#sql({
        text: "SELECT set_config('idle_in_transaction_session_timeout', '0', true)",
      });
      const done = await work(this.#sql);
      await this.#sql({ text: "COMMIT" });
      return done;
    } catch (error) {
      await this.#sql({ text: "ROLLBACK" }).catch(() => undefined);
      throw error;
    }
  }

  /** Returns the start times of the calls of rows. */
  async #callStarts(sql: RunSql, rows: readonly LedgerRow[]): Promise<ReadonlyMap<string, number>> {
    const began = new Map<string, number>();
    for (const { kind, attempt, at } of rows)
      if (kind === "reserve") {
        began.set(attempt, at);
        this.#openCalls.set(attempt, at);
      }
    const others = rows.filter(({ attempt }) => !began.has(attempt));
    const known = others.filter(({ attempt }) => this.#openCalls.has(attempt));
    for (const { attempt } of known) began.set(attempt, this.#openCalls.get(attempt)!);
    const unknown = others.filter(({ attempt }) => !began.has(attempt));
    for (const { attempt, at } of unknown) began.set(attempt, at);
    for (const row of await sql({
      text: `SELECT attempt, started_at FROM ${this.#schema}.ledger_row WHERE attempt = ANY ($1::text[]) AND kind = 0`,
      values: [textArray(unknown.map(({ attempt }) => attempt))],
    }))
      began.set(row["attempt"]!, Number(row["started_at"]));
    return began;
  }

  async #writeBatch(
    sql: RunSql,
    rows: readonly LedgerRow[],
    began: ReadonlyMap<string, number>,
  ): Promise<void> {
    const chain = await this.#chainFor(sql, rows[0]!.instance);
    chain.terms.beginBatch();
    const booked = rows.map((row) => chain.terms.planRow(row, began.get(row.attempt)!));
    await appendToChain(
      sql,
      this.#schema,
      chain,
      hashBatch(chain.head, booked.map(plannedRowLine)),
      booked.length,
    );
    await awaitAll(
      insertRowsQueries(this.#schema, chain.epoch, chain.n, booked, chain.terms).map(sql),
    );
    chain.terms.markStored(booked);
  }

  async #chainFor(sql: RunSql, instance: string): Promise<ImportedNode> {
    // The importing node writes only notes. An instance with the same name gets a trailing space.
    const id = instance === IMPORT_NODE ? `${instance} ` : instance;
    let chain = this.#chains.get(id);
    if (!chain) {
      const [row] = await sql({
        text: `INSERT INTO ${this.#schema}.node (id, state, last_heartbeat, lease) VALUES ($1, 'left', '-infinity', '0') RETURNING epoch`,
        values: [id],
      });
      chain = {
        epoch: Number(row!["epoch"]),
        n: 0,
        head: Buffer.alloc(0),
        terms: new TermsCache(),
      };
      this.#chains.set(id, chain);
    }
    return chain;
  }
}

const monthStart = (at: number): string => `${new Date(at).toISOString().slice(0, 7)}-01T00:00:00Z`;
