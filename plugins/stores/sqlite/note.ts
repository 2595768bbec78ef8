// What the ledger says of itself: that text was taken out, that sums stand for rows, what operators did. A note is a row of the chain like any other, alone in
// its commit, and no entry: listings and sums pass it over.
import { hash } from "node:crypto";
import type { AuditEnd, AuditEntry } from "tollgate/plugin";

export interface Note {
  /** Text behind this many hashes is gone; `sum` is of all of them. */
  readonly erased?: { readonly count: number; readonly sum: string };
  /** What an operator did, or how that ended. */
  readonly audit?: AuditEntry | AuditEnd;
  /** All entries before it came from another store, whose newest hash was this; `sums` is a hash of what they come to. */
  readonly moved?: { readonly head: string | null; readonly sums: string };
  /** Rows up to `last` are gone; what stands for them has these hashes. */
  readonly pruned?: { readonly last: number; readonly base: string; readonly sums: string };
}

/** The row of a note. */
export const noteText = (at: number, note: Note): string => JSON.stringify(["n", at, note]);

const BEGINNING = '[["n",';

/** Of a commit's rows; undefined: they are entries. Throws for what no note can be. */
export function noteOf(rows: string): { readonly at: number; readonly note: Note } | undefined {
  if (!rows.startsWith(BEGINNING)) return undefined;
  const [[, at, note]] = JSON.parse(rows) as [["n", number, Note]];
  return { at, note };
}

/** The same for the same hashes, in whatever order they are said. */
export const sumOf = (hashes: readonly string[]): string =>
  hash("sha256", [...hashes].sort().join("\n"));
