// tollgate/protocols/look: what a body names that is not its own, and what of it was reviewed. The tables are data, the walks
// are linear, and both protocols and the host use them: what leaves is what was looked at. Pure. May import: model,
// plugin (types).
export { ACCOUNT_FIELDS, CACHE_HINTS, CACHE_MARKS, ROUTING_FIELDS, STATE_RULES } from "./words.ts";
export { hostedToolFeatures, isTypedClientTool } from "./hosted.ts";
export { isStoredFile } from "./kept-files.ts";
export { referencedFeatures, findReferences, updateReferences, referencedModels } from "./named.ts";
export {
  findBlockedReference,
  referencesIn,
  rejectReference,
  rejectBlockedReferences,
  type RelayPermission,
  type ReferenceErrorStyle,
} from "./refusal.ts";
export {
  mergeAllowlist,
  parseAllowances,
  freeTextFields,
  valueFields,
  findDisallowedField,
  type OperatorAllowances,
  type DisallowedField,
} from "./review.ts";
