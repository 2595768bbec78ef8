// A ledger import writes a temporary file next to the target until the import is complete.
import { existsSync } from "node:fs";
import { fail } from "tollgate/plugin";

export const partialImportPath = (file: string): string => `${file}.importing`;

/**
 * Throws if an import into `file` is unfinished. A new ledger at `file` would conflict with the
 * import.
 */
export function rejectPartialImport(file: string): void {
  if (!existsSync(file) && existsSync(partialImportPath(file)))
    fail(
      "conflict",
      `An earlier import into ${file} is incomplete. Run tollgate store copy again, or remove ${partialImportPath(file)}.`,
      { code: "moving" },
    );
}
