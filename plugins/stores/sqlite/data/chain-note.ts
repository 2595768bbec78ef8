// A note is a record about the ledger itself: an erasure, a compaction, an import, or an operator's
// command. It is a row of the hash chain, alone in its commit. It is not an entry, so listings and
// rollups skip it.
import type { AuditEnd, AuditEntry } from "tollgate/plugin";
import { isNote, type CheckpointHashes } from "tollgate/store";

export interface ChainNote {
  /** The text behind `count` hashes was erased. `hash` covers all these hashes. */
  readonly erased?: { readonly count: number; readonly hash: string };
  /** An operator's command, or its result. */
  readonly audit?: AuditEntry | AuditEnd;
  /**
   * All earlier entries were imported from another store. `head` is the newest hash of that store.
   * `totals` is a hash of the totals of these entries.
   */
  readonly imported?: { readonly head: string | null; readonly totals: string };
  /**
   * Rows up to `last` were deleted. The other fields are hashes of the checkpoint and of its
   * rollups.
   */
  readonly compacted?: CheckpointHashes & { readonly last: number };
}

/** Encodes a note as a row. */
export const encodeNote = (at: number, note: ChainNote): string => JSON.stringify(["n", at, note]);

/**
 * Parses the note in the rows of a commit. Returns undefined if the rows are entries.
 * @throws If the rows start like a note but are not valid JSON.
 */
export function parseNote(
  rows: string,
): { readonly at: number; readonly note: ChainNote } | undefined {
  if (!isNote(rows)) return undefined;
  const [[, at, note]] = JSON.parse(rows) as [["n", number, ChainNote]];
  return { at, note };
}
