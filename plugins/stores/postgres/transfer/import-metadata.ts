// Imports all data except rows: records with a note for each, meters, checkpoint rollups, and a
// note about the source.
import type { TransferredRemainder } from "tollgate/plugin";
import {
  keyCursor,
  toJson,
  hashBatch,
  noteChainLine,
  createSalt,
  hashText,
  checkpointOfImport,
} from "tollgate/store";
import { storedReservedAmounts } from "../rows/line-amounts.ts";
import { parseMeterId } from "../rows/batch-plan.ts";
import { parseBytea } from "../write/slow-path.ts";
import type { RunSql } from "../connection/pipelined-connection.ts";
import { numberArray, textArray } from "../connection/array-literal.ts";
import { type Checkpoint, type CompactionNote } from "../retention/checkpoint.ts";

/** Name of the node that imports a ledger and writes its notes. */
export const IMPORT_NODE = "move";

/** The current end of a node's chain. */
export interface NodeChain {
  readonly epoch: number;
  n: number;
  head: Buffer;
}

/** Appends a batch to a chain. */
export async function appendToChain(
  sql: RunSql,
  schema: string,
  chain: NodeChain,
  head: Buffer,
  entries: number,
): Promise<void> {
  chain.n++;
  chain.head = head;
  await sql({
    text: `UPDATE ${schema}.node SET n = $2, head = $3 WHERE epoch = $1`,
    values: [chain.epoch, chain.n, head],
  });
  await sql({
    text: `INSERT INTO ${schema}.batch (node, n, at, hash, entries) VALUES ($1, $2, clock_timestamp(), $3, $4)`,
    values: [chain.epoch, chain.n, head, entries],
  });
}

export class ImportMetadata {
  readonly #schema: string;

  constructor(schema: string) {
    this.#schema = schema;
  }

  /** Writes the records of operators and commands, a note for each, and a note about the source. */
  async writeRecords(sql: RunSql, rest: TransferredRemainder): Promise<void> {
    const schema = this.#schema;
    const [digests, places, keys] = [
      rest.keys.map(({ digest }) => digest),
      rest.keys.map(keyCursor),
      rest.keys.map(toJson),
    ];
    await sql({
      text: `INSERT INTO ${schema}.key SELECT * FROM unnest($1::text[], $2::text[], $3::text[])`,
      values: [textArray(digests), textArray(places), textArray(keys)],
    });
    const accounts = rest.accounts.map(toJson);
    await sql({
      text: `INSERT INTO ${schema}.account SELECT * FROM unnest($1::text[], $2::text[])`,
      values: [textArray(rest.accounts.map(({ id }) => id)), textArray(accounts)],
    });
    await sql({
      text: `INSERT INTO ${schema}.price SELECT * FROM unnest($1::text[], $2::text[])`,
      values: [
        textArray(rest.prices.map(([hash]) => hash)),
        textArray(rest.prices.map(([, price]) => toJson(price))),
      ],
    });
    const audit = rest.audit.map(
      ([entry, end]) => [entry.id, toJson(entry), end && toJson(end)] as const,
    );
    for (const [id, entry, end] of audit)
      await sql({
        text: `INSERT INTO ${schema}.audit (id, entry, ended) VALUES ($1, $2, $3)`,
        values: [id, entry, end ?? null],
      });
    for (const [name, value] of rest.shared)
      await sql({
        text: `INSERT INTO ${schema}.shared VALUES ($1, $2) ON CONFLICT DO NOTHING`,
        values: [name, Buffer.from(value)],
      });
    const sums = hashText(toJson(rest.totals));
    await this.#writeNotes(sql, [
      ...keys.map((text, i) => ["key", digests[i]!, text] as const),
      ...accounts.map((text, i) => ["account", rest.accounts[i]!.id, text] as const),
      ...audit.map(([id, text]) => ["audit", id, text] as const),
      ...audit.flatMap(([id, , text]) =>
        text === undefined ? [] : [["audit_end", id, text] as const],
      ),
      ["imported", rest.head ?? "", toJson({ head: rest.head, sums })],
    ]);
  }

  async #writeNotes(
    sql: RunSql,
    notes: readonly (readonly [kind: string, id: string, text: string])[],
  ): Promise<void> {
    const chain = await this.#importChain(sql);
    const salted = notes.map((note) => [...note, createSalt()] as const);
    const head = hashBatch(
      chain.head,
      salted.map((note) => noteChainLine(...note)),
    );
    await appendToChain(sql, this.#schema, chain, head, 0);
    await sql({
      text: `INSERT INTO ${this.#schema}.note SELECT $1::int, $2::bigint, ord - 1, kind, id, floor(extract(epoch FROM clock_timestamp()) * 1000), text, salt
        FROM unnest($3::text[], $4::text[], $5::text[], $6::text[]) WITH ORDINALITY AS o(kind, id, text, salt, ord)`,
      values: [
        chain.epoch,
        chain.n,
        ...([0, 1, 2, 3] as const).map((i) => textArray(salted.map((note) => note[i]))),
      ],
    });
  }

  async #importChain(sql: RunSql): Promise<NodeChain> {
    const [row] = await sql({
      text: `SELECT epoch, n, head FROM ${this.#schema}.node WHERE id = $1`,
      values: [IMPORT_NODE],
    });
    return { epoch: Number(row!["epoch"]), n: Number(row!["n"]), head: parseBytea(row!["head"]!) };
  }

  /** Writes meters, including the reserved amounts of open calls. */
  async writeMeters(sql: RunSql, { meters, lastProgress }: TransferredRemainder): Promise<void> {
    const schema = this.#schema;
    const held = new Map<string, bigint>();
    const open = await sql({
      text: `SELECT e.rest, o.line_amounts FROM ${schema}.open_call o JOIN ${schema}.ledger_row e ON e.attempt = o.attempt AND e.started_at = o.started_at AND e.kind = 0`,
    });
    for (const { rest = null, line_amounts: lines = null } of open)
      for (const [id, amount] of storedReservedAmounts(rest, lines))
        if (parseMeterId(id).period === 0) held.set(id, (held.get(id) ?? 0n) + amount);
    const known = new Set(meters.map(({ id }) => id));
    const all = [
      ...meters,
      ...[...held.keys()]
        .filter((id) => !known.has(id))
        .map((id) => ({ id, level: 0n, at: 0, max: 0n, notifiedLevel: 0n })),
    ];
    await sql({
      text: `INSERT INTO ${schema}.meter (id, level, reserved, at, max, peak, notified_level)
        SELECT * FROM unnest($1::text[], $2::numeric[], $3::numeric[], $4::bigint[], $5::numeric[], $6::numeric[], $7::numeric[])`,
      values: [
        textArray(all.map(({ id }) => id)),
        numberArray(all.map(({ level }) => level)),
        numberArray(all.map(({ id }) => held.get(id) ?? 0n)),
        numberArray(all.map(({ at }) => Math.floor(at))),
        numberArray(all.map(({ max }) => max)),
        numberArray(all.map(({ id, level }) => (parseMeterId(id).period === 0 ? level : 0n))),
        numberArray(all.map(({ notifiedLevel }) => notifiedLevel)),
      ],
    });
    for (const [attempt, usage, costNano] of lastProgress)
      await sql({
        text: `UPDATE ${schema}.open_call SET usage = $2, cost = $3::text::bigint WHERE attempt = $1`,
        values: [attempt, JSON.stringify(usage), costNano === null ? null : String(costNano)],
      });
  }

  async writeCheckpoint(sql: RunSql, { rollups }: TransferredRemainder): Promise<void> {
    if (!rollups) return;
    const schema = this.#schema;
    const { base, rollups: sums, rollupHash } = checkpointOfImport(rollups, Date.now());
    await sql({
      text: `INSERT INTO ${schema}.checkpoint_rollup SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::text[])`,
      values: [
        numberArray(sums.map(([n]) => n)),
        numberArray(sums.map(([, quarter]) => quarter)),
        textArray(sums.map(([, , text]) => text)),
        textArray(sums.map(([, , , hash]) => hash)),
      ],
    });
    const checkpoint: Checkpoint = {
      nextSeq: 1,
      link: "",
      ...base,
      retainedReserves: [],
      anchors: [],
    };
    const text = JSON.stringify(checkpoint);
    await sql({
      text: `INSERT INTO ${schema}.checkpoint (next_seq, rollups, text) VALUES (1, $1, $2)`,
      values: [sums.length, text],
    });
    const hashes = { checkpoint: hashText(text), rollups: rollupHash };
    const note = { nextSeq: 1, ...hashes } satisfies CompactionNote;
    await this.#writeNotes(sql, [["compacted", "1", JSON.stringify(note)]]);
  }
}
