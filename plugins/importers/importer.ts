import type { ConfigDraft } from "./config-draft.ts";
import type { ImportedKey } from "./key-export.ts";
import type { SourceValue } from "./source-value.ts";

/** Converts the config of another gateway. */
export interface Importer {
  /** Name of the other gateway, which is an argument of `tollgate import`. */
  readonly name: string;
  /**
   * Reads the config and adds providers, routes, accounts, and settings to the draft of
   * gateway.yaml. `source` records which values were read. The others are reported to the operator
   * as unsupported.
   * @param options `modelName` is the model that clients request if the config names none.
   * @returns The keys that the config contains.
   */
  importConfig(
    source: SourceValue,
    draft: ConfigDraft,
    options: { readonly modelName: string },
  ): readonly ImportedKey[];
}
