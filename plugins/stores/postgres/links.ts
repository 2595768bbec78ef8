// The one chain of all batches, read in its own order, a stretch at a time.
import { createHash } from "node:crypto";
import { bytes } from "./exact.ts";
import type { Ask, Row } from "./line.ts";

/** Batches that are read at once. */
const STRIDE = 5_000;

/** What the chain has after a batch. */
export function linkOf(head: Uint8Array, { node, n, hash }: Row): Buffer {
  const number = Buffer.alloc(12);
  number.writeInt32BE(Number(node), 0);
  number.writeBigInt64BE(BigInt(n!), 4);
  return createHash("sha256").update(head).update(number).update(bytes(hash!)).digest();
}

/** Batches of one stretch, in the order of the chain; `broken`: where it does not go on. */
export interface Stretch {
  readonly batches: readonly Row[];
  readonly head: Buffer;
  readonly broken: string | undefined;
}

/**
 * From `from` on and before `to`. Batches without entries share their number with what follows them: which one is first is told by
 * what it links to.
 */
export async function* stretches(
  ask: Ask,
  s: string,
  { from, to, head }: { readonly from: number; readonly to: number; readonly head: Buffer },
): AsyncGenerator<Stretch, void> {
  let last = head;
  for (let at = from, more = true; more;) {
    const rows = await ask({
      text: `SELECT node, n, hash, entries, pos, link FROM ${s}.batch
        WHERE pos >= $1 AND (pos < $2 OR (pos = $2 AND entries = 0)) ORDER BY pos, entries, node, n LIMIT $3`,
      values: [at, to, STRIDE],
    });
    more = rows.length === STRIDE;
    // Of the last number there may be more than these.
    const edge = more && rows[0]!["pos"] !== rows.at(-1)!["pos"] ? rows.at(-1)!["pos"]! : undefined;
    const here = edge === undefined ? rows : rows.filter(({ pos }) => pos !== edge);
    if (more) at = edge === undefined ? Number(rows[0]!["pos"]) + 1 : Number(edge);
    const stretch = ordered(here, last);
    yield stretch;
    if (stretch.broken !== undefined) return;
    last = stretch.head;
  }
}

function ordered(rows: readonly Row[], head: Buffer): Stretch {
  const groups = new Map<string, Row[]>();
  for (const row of rows) {
    const group = groups.get(row["pos"]!);
    if (group) group.push(row);
    else groups.set(row["pos"]!, [row]);
  }
  const batches: Row[] = [];
  let last = head;
  for (const [pos, group] of groups)
    for (const left = [...group]; left.length > 0;) {
      const next = left.findIndex((row) => linkOf(last, row).equals(bytes(row["link"]!)));
      if (next < 0) return { batches, head: last, broken: pos };
      const [found] = left.splice(next, 1);
      last = bytes(found!["link"]!);
      batches.push(found!);
    }
  return { batches, head: last, broken: undefined };
}
