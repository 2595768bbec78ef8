// Describes a backup. The manifest is the last file in it, so that the other files need not be read
// twice.
import type { LedgerBackup } from "../../plugin/store/ledger-maintenance.ts";
import { fail } from "../../model/error.ts";

export interface BackupManifest {
  readonly kind: "tollgate backup";
  readonly version: 1;
  /** Tollgate version that created it, and when. */
  readonly tollgate: string;
  readonly at: number;
  /** Plugin name of the store in gateway.yaml. Another type of store cannot read the backup. */
  readonly store: string;
  /** Newest row. */
  readonly head: LedgerBackup["head"] | null;
  readonly sums: Omit<LedgerBackup["total"], "costNano"> & { readonly costNano: string };
  /**
   * Texts that were erased so far. An older backup still contains them, and `restore --erased-in`
   * removes them.
   */
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
/** Other files of the state directory that a backup contains. */
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
    // Reported below.
  }
  return fail("invalid", "This version of Tollgate cannot read the backup.", {
    code: "no_backup",
  });
}
