// tollgate/protocols/look: what a body names that is not its own, and what of it was reviewed. The tables are data, the walks
// are linear, and both protocols and the host use them: what leaves is what was looked at. Pure. May import: model,
// plugin (types).
export { ACCOUNTS, CACHE_HINTS, CACHE_MARKS, ROUTING, STATE } from "./words.ts";
export { hostedBy, isTyped } from "./hosted.ts";
export { isKeptFile } from "./kept-files.ts";
export { featuresOf, look, lookAgain, modelsOf } from "./named.ts";
export {
  keptIn,
  namedIn,
  refuse,
  refuseKept,
  type RelayPermission,
  type RefusalStyle,
} from "./refusal.ts";
export {
  all,
  allowing,
  free,
  plain,
  stranger,
  type Allowed,
  type UnreviewedField,
} from "./review.ts";
