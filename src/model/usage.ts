import type { Opt } from "./values.ts";

/**
 * Unit of usage. Units do not overlap, so a price is a sum over them. The exception is `reasoning`,
 * which is included in `output` and never charged in addition. A unit that is not set was not
 * reported. A unit that is 0 was reported as zero.
 *
 * `cache_read` counts cached input of all types. The exceptions are cached audio and images that
 * the provider reports separately: `cache_read_audio` and `cache_read_image`.
 *
 * Tools that the provider runs have separate units: `searches` of the web, `fetches` of a page,
 * `file_searches`, `map_searches`, and `code_sessions` (containers in which code ran). Any other
 * tool counts as `tool_runs`.
 */
export type Unit =
  | "input"
  | "cache_read"
  | "cache_read_audio"
  | "cache_read_image"
  | `cache_write_${"5m" | "30m" | "1h" | "12h"}`
  | "output"
  | "reasoning"
  | "audio_in"
  | "audio_out"
  | "image_in"
  | "image_out"
  | "images"
  | "megapixels"
  | "searches"
  | "fetches"
  | "file_searches"
  | "map_searches"
  | "code_sessions"
  | "tool_runs"
  | "seconds"
  | "seconds_out"
  | "characters"
  | "pages"
  | "requests";

/** Units that are not tokens and are priced per piece. */
export const PIECE_UNITS: readonly Unit[] = [
  "images",
  "megapixels",
  "searches",
  "fetches",
  "file_searches",
  "map_searches",
  "code_sessions",
  "tool_runs",
  "seconds",
  "seconds_out",
  "characters",
  "pages",
  "requests",
];

/** All units, in the order in which reports and prices list them. */
export const UNITS = [
  "input",
  "cache_read",
  "cache_read_audio",
  "cache_read_image",
  "cache_write_5m",
  "cache_write_30m",
  "cache_write_1h",
  "cache_write_12h",
  "output",
  "reasoning",
  "audio_in",
  "audio_out",
  "image_in",
  "image_out",
  ...PIECE_UNITS,
] as const satisfies readonly Unit[];

/**
 * Unit of the ledger. In addition to the units that providers count, `list_nano_usd` is the list
 * price, in billionths of a US dollar, of a call that the client paid with its own credential.
 */
export type LedgerUnit = Unit | "list_nano_usd";

/** All units of the ledger, in the order in which reports list them. */
export const LEDGER_UNITS = [...UNITS, "list_nano_usd"] as const satisfies readonly LedgerUnit[];

/**
 * Name of the credential of a call that the client paid with its own credential. No credential in
 * gateway.yaml has this name.
 */
export const CLIENT_CREDENTIAL = "client";

/** Amount used, by unit. Only the gateway sets `list_nano_usd`. */
export type Usage = { readonly [U in LedgerUnit]?: Opt<number> };

/** Merges cumulative reports. For each unit, the later count replaces the earlier count. */
export function mergeUsage(earlier: Usage, later: Usage): Usage {
  const merged: { -readonly [U in Unit]?: Opt<number> } = { ...earlier };
  for (const unit of UNITS) if (later[unit] !== undefined) merged[unit] = later[unit];
  return merged;
}

/** Returns all input tokens that were read from a cache. */
export const cacheReadTokens = (u: Usage): number =>
  (u.cache_read ?? 0) + (u.cache_read_audio ?? 0) + (u.cache_read_image ?? 0);

/**
 * Returns all input tokens, including cached tokens, as client protocols count input or prompt
 * tokens.
 */
export const inputTokens = (u: Usage): number =>
  (u.input ?? 0) +
  cacheReadTokens(u) +
  (u.cache_write_5m ?? 0) +
  (u.cache_write_30m ?? 0) +
  (u.cache_write_1h ?? 0) +
  (u.cache_write_12h ?? 0) +
  (u.audio_in ?? 0) +
  (u.image_in ?? 0);

/** Returns all output tokens. `reasoning` is included in `output`. */
export const outputTokens = (u: Usage): number =>
  (u.output ?? 0) + (u.audio_out ?? 0) + (u.image_out ?? 0);
