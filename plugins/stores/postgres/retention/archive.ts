// Writes ledger rows to an archive of compressed JSON lines. Each batch is written as the chains
// cover it, so the file proves itself. Node chains verify the batches. The global chain verifies
// all of them, up to a hash that the ledger has or had.
import { createHash } from "node:crypto";
import { createWriteStream } from "node:fs";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createGzip } from "node:zlib";
import type { ArchiveInfo, ArchiveRequest } from "tollgate/plugin";
import { readCheckpoint } from "./checkpoint.ts";
import { parseBytea } from "../write/slow-path.ts";
import { findCompactionRange } from "./compaction.ts";
import type { RunSql, Row } from "../connection/pipelined-connection.ts";
import { readChain } from "../read/global-chain.ts";
import type { ColumnValues } from "../rows/row-codec.ts";
import { hashLabels, hashNote } from "../rows/salted-labels.ts";
import { ALL_COLUMNS } from "../rows/columns.ts";
import { ArchiveTotals } from "./archive-totals.ts";

/** Format name in the first line. */
export const ARCHIVE_FORMAT = "tollgate ledger archive";
export const ARCHIVE_VERSION = 1;

/** The point from which the chain of a node continues. */
export type NodeStart = readonly [node: number, n: number, head: string];

export interface HeaderLine {
  readonly kind: string;
  readonly version: number;
  readonly store: "postgres";
  /** Number of the first entry, and the chain hash before it. */
  readonly next_seq: number;
  readonly after: string;
  readonly nodes: readonly NodeStart[];
  readonly labels: boolean;
}

export interface BatchLine {
  readonly node: number;
  readonly n: number;
  readonly rows: readonly ColumnValues[];
  /** Kind, ID, and the hash of the text that the chain covers. */
  readonly notes: readonly (readonly [kind: string, id: string, proved: string])[];
}

export interface FooterLine {
  readonly end: string;
  readonly rows: number;
  readonly from: number | null;
  readonly to: number | null;
  readonly total: object;
  /** Hash of all lines before this one. */
  readonly sha256: string;
}

/**
 * Archives all batches whose entries are older than `before`, starting with the oldest existing
 * batch. It stops at the first batch with a newer entry.
 */
export async function writeArchive(
  sql: RunSql,
  schema: string,
  file: string,
  { before, labels }: ArchiveRequest,
): Promise<ArchiveInfo> {
  const base = await readCheckpoint(sql, schema);
  const from = base?.nextSeq ?? 1;
  const most = Number.MAX_SAFE_INTEGER;
  const cut = await findCompactionRange(sql, schema, {
    from,
    before: Math.min(before, most),
    limit: Infinity,
    most,
  });
  const after = base?.link ?? "";
  const tally = new ArchiveTotals();
  let end = after;
  async function* lines(): AsyncGenerator<string, void> {
    const digest = createHash("sha256");
    const said = (line: object): string => {
      const text = `${JSON.stringify(line)}\n`;
      digest.update(text);
      return text;
    };
    const nodes = (base?.anchors ?? []).map(([node, n, head]): NodeStart => [node, n, head]);
    yield said({
      kind: ARCHIVE_FORMAT,
      version: ARCHIVE_VERSION,
      store: "postgres",
      next_seq: from,
      after,
      nodes,
      labels,
    });
    const head = Buffer.from(after, "hex");
    const to = cut?.to ?? from;
    for await (const stretch of cut ? readChain(sql, schema, { from, to, head }) : []) {
      const texts = await readBatchTexts(sql, schema, stretch.batches);
      for (const batch of stretch.batches) {
        if (Number(batch["seq"]) >= to) break;
        const rows = texts.rows(batch).map((row) => (labels ? row : withoutLabels(row)));
        for (const row of rows) tally.add(row);
        end = parseBytea(batch["chain_hash"]!).toString("hex");
        const [node, n] = [Number(batch["node"]), Number(batch["n"])];
        yield said({ node, n, rows, notes: texts.notes(batch) } satisfies BatchLine);
      }
    }
    yield `${JSON.stringify({ end, ...tally.footer(), sha256: digest.digest("hex") } satisfies FooterLine)}\n`;
  }
  await pipeline(
    Readable.from(lines(), { highWaterMark: 64 }),
    createGzip({ level: 6 }),
    createWriteStream(file, { mode: 0o600 }),
  );
  return tally.facts(after, end);
}

const LABELS_INDEX = ALL_COLUMNS.indexOf("labels");
const SALT_INDEX = ALL_COLUMNS.indexOf("salt");

/** Replaces labels by their chain hashes, which are sufficient to verify the rest. */
const withoutLabels = (row: ColumnValues): ColumnValues =>
  row.with(LABELS_INDEX, hashLabels(row[LABELS_INDEX]!, row[SALT_INDEX]!)).with(SALT_INDEX, null);

/** Reads the rows and notes of batches. */
async function readBatchTexts(sql: RunSql, schema: string, batches: readonly Row[]) {
  const values = [
    `{${batches.map(({ node }) => node).join(",")}}`,
    `{${batches.map(({ n }) => n).join(",")}}`,
  ];
  const of = `(SELECT * FROM unnest($1::int[], $2::bigint[]) AS o(node, n)) o`;
  const rows = await sql({
    text: `SELECT e.node, e.n, ${ALL_COLUMNS.map((name) => `e.${name}`).join(", ")} FROM ${of}
      JOIN ${schema}.entry e ON e.node = o.node AND e.n = o.n ORDER BY e.node, e.n, e.i`,
    values,
  });
  const notes = await sql({
    text: `SELECT e.node, e.n, e.kind, e.id, e.text, e.salt FROM ${of}
      JOIN ${schema}.note e ON e.node = o.node AND e.n = o.n ORDER BY e.node, e.n, e.i`,
    values,
  });
  const found = { rows: groupByBatch(rows), notes: groupByBatch(notes) };
  return {
    rows: (batch: Row) =>
      (found.rows.get(batchId(batch)) ?? []).map((row) =>
        ALL_COLUMNS.map((name) => row[name] ?? null),
      ),
    notes: (batch: Row) =>
      (found.notes.get(batchId(batch)) ?? []).map(
        ({ kind, id, text, salt }) => [kind!, id!, hashNote(salt!, text!)] as const,
      ),
  };
}

const batchId = ({ node, n }: Row): string => `${node}/${n}`;

function groupByBatch(rows: readonly Row[]): ReadonlyMap<string, Row[]> {
  const of = new Map<string, Row[]>();
  for (const row of rows) {
    const found = of.get(batchId(row));
    if (found) found.push(row);
    else of.set(batchId(row), [row]);
  }
  return of;
}
