// Entry of the importers. `tollgate import` and `tollgate keys import` load it when they run.
import { bifrost } from "./bifrost.ts";
import type { Importer } from "./importer.ts";
import { litellm } from "./litellm.ts";
import { portkey } from "./portkey.ts";

export { ConfigDraft, slug } from "./config-draft.ts";
export { readImportedKeys, toKeysJson, type ImportedKey } from "./key-export.ts";
export type { Importer } from "./importer.ts";
export { importKeys, importTeams } from "./team-export.ts";
export {
  FINDING_KINDS,
  SourceValue,
  type FindingKind,
  type ImportFinding,
} from "./source-value.ts";

export const importers: readonly Importer[] = [litellm, portkey, bifrost];
