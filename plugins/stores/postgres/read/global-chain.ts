// Reads the global chain of all batches in order, one section at a time.
import { chainLink } from "tollgate/store";
import { parseBytea } from "../write/slow-path.ts";
import type { RunSql, Row } from "../connection/pipelined-connection.ts";

/** Number of batches per read. */
const BATCHES_PER_READ = 5_000;

/**
 * A section of the chain in order. `breakMessage` is the sequence number where the chain breaks.
 */
export interface ChainSection {
  readonly batches: readonly Row[];
  readonly head: Buffer;
  readonly breakMessage: string | undefined;
}

/**
 * Yields the chain from sequence number `from` up to but excluding `to`. Batches without entries
 * share their number with the next batch. Their order follows from their chain hashes.
 */
export async function* readChain(
  sql: RunSql,
  schema: string,
  { from, to, head }: { readonly from: number; readonly to: number; readonly head: Buffer },
): AsyncGenerator<ChainSection, void> {
  let last = head;
  for (let at = from, more = true; more;) {
    const rows = await sql({
      text: `SELECT node, n, hash, entries, seq, chain_hash FROM ${schema}.batch
        WHERE seq >= $1 AND (seq < $2 OR (seq = $2 AND entries = 0)) ORDER BY seq, entries, node, n LIMIT $3`,
      values: [at, to, BATCHES_PER_READ],
    });
    more = rows.length === BATCHES_PER_READ;
    // There may be more batches with the last number.
    const edge = more && rows[0]!["seq"] !== rows.at(-1)!["seq"] ? rows.at(-1)!["seq"]! : undefined;
    const here = edge === undefined ? rows : rows.filter(({ seq }) => seq !== edge);
    if (more) at = edge === undefined ? Number(rows[0]!["seq"]) + 1 : Number(edge);
    const stretch = orderByLink(here, last);
    yield stretch;
    if (stretch.breakMessage !== undefined) return;
    last = stretch.head;
  }
}

function orderByLink(rows: readonly Row[], head: Buffer): ChainSection {
  const groups = new Map<string, Row[]>();
  for (const row of rows) {
    const group = groups.get(row["seq"]!);
    if (group) group.push(row);
    else groups.set(row["seq"]!, [row]);
  }
  const batches: Row[] = [];
  let last = head;
  for (const [seq, group] of groups)
    for (const left = [...group]; left.length > 0;) {
      const next = left.findIndex((row) =>
        chainLink(last, Number(row["node"]), Number(row["n"]), parseBytea(row["hash"]!)).equals(
          parseBytea(row["chain_hash"]!),
        ),
      );
      if (next < 0) return { batches, head: last, breakMessage: seq };
      const [found] = left.splice(next, 1);
      last = parseBytea(found!["chain_hash"]!);
      batches.push(found!);
    }
  return { batches, head: last, breakMessage: undefined };
}
