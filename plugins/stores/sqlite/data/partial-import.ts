// A ledger that is moved in lies beside its place until all of it is there.
import { existsSync } from "node:fs";
import { fail } from "tollgate/plugin";

export const partialImportPath = (file: string): string => `${file}.importing`;

/** A ledger that began beside it would be in the way of what is to come. */
export function rejectPartialImport(file: string): void {
  if (!existsSync(file) && existsSync(partialImportPath(file)))
    fail(
      "conflict",
      `A move into ${file} is not finished: run tollgate store copy again, or remove ${partialImportPath(file)}.`,
      { code: "moving" },
    );
}
