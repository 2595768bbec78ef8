// References: finds what a request body refers to outside itself, and checks fields against
// allowlists. The rules are tables, and each search takes linear time. Both the protocols and the
// host use this code, so the checked body is the body that is sent. Pure: no I/O and no clock. May
// import: model, plugin (types).
export {
  ACCOUNT_FIELDS,
  CACHE_HINTS,
  CACHE_MARKS,
  ROUTING_FIELDS,
  STATE_RULES,
} from "./reference-rules.ts";
export { hostedToolFeatures, isTypedClientTool } from "./hosted-tools.ts";
export { isStoredFile } from "./reference-rules.ts";
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
} from "./find-references.ts";
export {
  mergeAllowlist,
  parseAllowances,
  freeTextFields,
  valueFields,
  findDisallowedField,
  type OperatorAllowances,
  type DisallowedField,
} from "./field-allowlist.ts";
