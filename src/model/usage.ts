import type { Opt } from "./values.ts";

/**
 * Units do not overlap, so a price is a sum over them; only `reasoning` lies inside `output`
 * and is a count, never a second charge. Absent means not reported; 0 means reported as zero.
 *
 * Tools that the provider runs have units of their own: `searches` of the web, `fetches` of a page,
 * `file_searches`, `map_searches`, `code_sessions` (containers that code ran in), and `tool_runs`
 * for any other tool.
 */
export type Unit =
  | "input"
  | "cache_read"
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

/** All units, in the order in which reports and prices list them. */
export const UNITS = [
  "input",
  "cache_read",
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
] as const satisfies readonly Unit[];

/** What is no token: priced by the piece. */
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

/** How much of each unit was used. */
export type Usage = { readonly [U in Unit]?: Opt<number> };

/** Reports are cumulative: a later one replaces an earlier one, unit by unit. */
export function mergeUsage(earlier: Usage, later: Usage): Usage {
  const merged: { -readonly [U in Unit]?: Opt<number> } = { ...earlier };
  for (const unit of UNITS) if (later[unit] !== undefined) merged[unit] = later[unit];
  return merged;
}

/** Everything the model read: what the clients' protocols call input or prompt tokens, caches included. */
export const inputTokens = (u: Usage): number =>
  (u.input ?? 0) +
  (u.cache_read ?? 0) +
  (u.cache_write_5m ?? 0) +
  (u.cache_write_30m ?? 0) +
  (u.cache_write_1h ?? 0) +
  (u.cache_write_12h ?? 0) +
  (u.audio_in ?? 0) +
  (u.image_in ?? 0);

/** Everything the model wrote; reasoning lies inside `output`. */
export const outputTokens = (u: Usage): number =>
  (u.output ?? 0) + (u.audio_out ?? 0) + (u.image_out ?? 0);
