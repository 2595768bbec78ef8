// Provides the batches of an archive, as the chains cover them. Node chains verify the batches. The
// global chain verifies all node chains, up to a hash that the ledger has or had.
import type { ArchiveInfo, ArchiveRequest } from "tollgate/plugin";
import {
  decodeColumns,
  encodeCommit,
  hashLabels,
  hashOrErased,
  isErasedSalt,
  toJsonText,
  writeArchive,
  type ArchivedCommit,
  type ColumnRow,
  type LabelTexts,
  type LedgerRow,
  type SaltedText,
} from "tollgate/store";
import { readCheckpoint } from "./checkpoint.ts";
import { parseBytea } from "../write/slow-path.ts";
import { findCompactionRange, type CompactionRange } from "./compaction.ts";
import type { RunSql, Row } from "../connection/pipelined-connection.ts";
import { readChain } from "../read/global-chain.ts";
import { nodeJoinSql, ROW_SELECT_SQL } from "../rows/row-sql.ts";

/**
 * Archives all batches whose entries are older than `before`, starting with the oldest existing
 * batch. Archiving stops at the first batch with a newer entry.
 */
export async function archive(
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
  const texts = new Map<string, SaltedText>();
  return writeArchive(file, {
    after: { seq: from - 1, hash: base?.link ?? "" },
    nodes: (base?.anchors ?? []).map(([node, n, head]) => [node, n, head]),
    commits: cut ? readCommits(sql, schema, cut, base?.link ?? "", texts) : [],
    findText: labels ? (hash) => texts.get(hash) ?? { salt: null, text: null } : undefined,
  });
}

/** Yields the batches of a range. Collects the texts of their labels in `texts`. */
async function* readCommits(
  sql: RunSql,
  schema: string,
  { from, to }: CompactionRange,
  after: string,
  texts: Map<string, SaltedText>,
): AsyncGenerator<ArchivedCommit, void> {
  const head = Buffer.from(after, "hex");
  for await (const section of readChain(sql, schema, { from, to, head })) {
    texts.clear();
    const found = await readBatches(sql, schema, section.batches);
    for (const batch of section.batches) {
      const first = Number(batch["seq"]);
      if (first >= to) break;
      const rows = found.rows(batch);
      yield {
        first,
        last: first + rows.length - 1,
        hash: parseBytea(batch["chain_hash"]!).toString("hex"),
        ...encodeCommit(
          rows[0]?.["instance"] ?? "",
          rows.map((row) => decodeHashed(row, texts)),
        ),
        batch: {
          node: Number(batch["node"]),
          n: Number(batch["n"]),
          startedAt: rows.map((row) => Number(row["started_at"])),
          notes: found
            .notes(batch)
            .map(({ kind, id, text, salt }) => [kind!, id!, hashOrErased(salt!, text!)]),
        },
      };
    }
  }
}

/** Decodes a row with hashes in place of its labels. */
function decodeHashed(columns: Row, texts: Map<string, SaltedText>): LedgerRow {
  const row = decodeColumns(columns as ColumnRow);
  const [labels, salts] = [columns["labels"] ?? null, columns["salt"] ?? null];
  if (labels === null || salts === null) return row;
  const hashes = hashLabels(labels, salts);
  const of = JSON.parse(salts) as LabelTexts;
  for (const [name, text] of Object.entries(row.labels))
    if (!isErasedSalt(of[name]!))
      texts.set(hashes[name]!, { salt: of[name]!, text: toJsonText(text!) });
  return { ...row, labels: hashes };
}

/** Reads the rows and notes of batches. */
async function readBatches(sql: RunSql, schema: string, batches: readonly Row[]) {
  const values = [
    `{${batches.map(({ node }) => node).join(",")}}`,
    `{${batches.map(({ n }) => n).join(",")}}`,
  ];
  const of = `(SELECT * FROM unnest($1::int[], $2::bigint[]) AS o(node, n)) o`;
  const rows = await sql({
    text: `SELECT e.node, e.n, ${ROW_SELECT_SQL} FROM ${of}
      JOIN ${schema}.entry e ON e.node = o.node AND e.n = o.n ${nodeJoinSql(schema)} ORDER BY e.node, e.n, e.i`,
    values,
  });
  const notes = await sql({
    text: `SELECT e.node, e.n, e.kind, e.id, e.text, e.salt FROM ${of}
      JOIN ${schema}.note e ON e.node = o.node AND e.n = o.n ORDER BY e.node, e.n, e.i`,
    values,
  });
  const id = ({ node, n }: Row): string => `${node}/${n}`;
  const found = [rows, notes].map((of) => Map.groupBy(of, id));
  return {
    rows: (batch: Row): readonly Row[] => found[0]!.get(id(batch)) ?? [],
    notes: (batch: Row): readonly Row[] => found[1]!.get(id(batch)) ?? [],
  };
}
