// What a backup says of itself. It is the last file in it, so that the others need not be read twice.
import type { LedgerBackup } from "../../plugin/store/ledger-maintenance.ts";
import { fail } from "../../model/error.ts";

export interface BackupManifest {
  readonly kind: "tollgate backup";
  readonly version: 1;
  /** Which Tollgate made it, and when. */
  readonly tollgate: string;
  readonly at: number;
  /** The store, as gateway.yaml names it: another kind of store cannot read the copy. */
  readonly store: string;
  /** The newest row. */
  readonly head: LedgerBackup["head"] | null;
  readonly sums: Omit<LedgerBackup["total"], "costNano"> & { readonly costNano: string };
  /** What was erased so far: a copy from before that has it still, and `restore --erased-in` takes it out again. */
  readonly erased: readonly string[];
  readonly files: readonly BackupFile[];
}
export interface BackupFile {
  readonly name: string;
  readonly bytes: number;
  readonly sha256: string;
}

export const MANIFEST_NAME = "manifest.json";
export const LEDGER_NAME = "ledger";
/** What else there is to keep of a state folder. */
export const OTHER_FILES = /^(?:files\/key|catalog\/[\w.@-]{1,80})$/;

export const toManifestSums = ({ calls, usage, costNano, unpriced }: LedgerBackup["total"]) => ({
  calls,
  usage,
  costNano: String(costNano),
  unpriced,
});

export function parseManifest(text: string): BackupManifest {
  try {
    const parsed = JSON.parse(text) as BackupManifest;
    if (parsed.kind === "tollgate backup" && parsed.version === 1) return parsed;
  } catch {
    // Said below.
  }
  return fail("invalid", "It is no backup that this version of Tollgate can read.", {
    code: "no_backup",
  });
}
