// tollgate/protocols/references: what a body names that is not its own, and what of it was reviewed. The tables are data, the walks
// are linear, and both protocols and the host use them: what leaves is what was looked at. Pure. May import: model,
// plugin (types).
export {
  ACCOUNT_FIELDS,
  CACHE_HINTS,
  CACHE_MARKS,
  ROUTING_FIELDS,
  STATE_RULES,
} from "./reference-rules.ts";
export { hostedToolFeatures, isTypedClientTool } from "./hosted-tools.ts";
export { isStoredFile } from "./stored-files.ts";
export {
  referencedFeatures,
  findReferences,
  updateReferences,
  referencedModels,
} from "./find-references.ts";
export {
  findBlockedReference,
  referencesIn,
  rejectReference,
  rejectBlockedReferences,
  type RelayPermission,
  type ReferenceErrorStyle,
} from "./stored-references.ts";
export {
  mergeAllowlist,
  parseAllowances,
  freeTextFields,
  valueFields,
  findDisallowedField,
  type OperatorAllowances,
  type DisallowedField,
} from "./field-allowlist.ts";
