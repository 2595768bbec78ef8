// What the ledger says of itself: that text was taken out, that sums stand for rows, what operators did. A note is a row of the chain like any other, alone in
// its commit, and no entry: listings and sums pass it over.
import { hash } from "node:crypto";
import type { AuditEnd, AuditEntry } from "tollgate/plugin";

export interface ChainNote {
  /** Text behind this many hashes is gone; `hash` is of all of them. */
  readonly erased?: { readonly count: number; readonly hash: string };
  /** What an operator did, or how that ended. */
  readonly audit?: AuditEntry | AuditEnd;
  /** All entries before it came from another store, whose newest hash was this; `totals` is a hash of what they come to. */
  readonly imported?: { readonly head: string | null; readonly totals: string };
  /** Rows up to `last` are gone; what stands for them has these hashes. */
  readonly compacted?: {
    readonly last: number;
    readonly checkpoint: string;
    readonly rollups: string;
  };
}

/** The row of a note. */
export const encodeNote = (at: number, note: ChainNote): string => JSON.stringify(["n", at, note]);

const NOTE_PREFIX = '[["n",';

/** Of a commit's rows; undefined: they are entries. Throws for what no note can be. */
export function parseNote(
  rows: string,
): { readonly at: number; readonly note: ChainNote } | undefined {
  if (!rows.startsWith(NOTE_PREFIX)) return undefined;
  const [[, at, note]] = JSON.parse(rows) as [["n", number, ChainNote]];
  return { at, note };
}

/** The same for the same hashes, in whatever order they are said. */
export const hashSet = (hashes: readonly string[]): string =>
  hash("sha256", [...hashes].sort().join("\n"));
