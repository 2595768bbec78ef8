// Fallback rates estimate the cost of a counted unit for which the price has no line.
import type { Unit } from "../model/usage.ts";
import { compareFractions, multiplyFractions, type Fraction } from "./decimal.ts";

/**
 * A unit whose line can be used instead, and the number of these units to assume per original unit.
 */
type FallbackUnit = readonly [unit: Unit, count: number];

const oneForOne = (...units: Unit[]): readonly FallbackUnit[] =>
  units.map((unit): FallbackUnit => [unit, 1]);

const CACHE_WRITE_UNITS = [
  "cache_write_5m",
  "cache_write_30m",
  "cache_write_1h",
  "cache_write_12h",
] as const satisfies readonly Unit[];
const INPUT_FALLBACKS = oneForOne("input", "audio_in", "image_in", ...CACHE_WRITE_UNITS);
/** Cache-write lines are excluded, because reading a cache does not write it. */
const CACHE_READ_FALLBACKS = oneForOne("input", "audio_in", "image_in");
const OUTPUT_FALLBACKS = oneForOne("output", "reasoning", "audio_out", "image_out");

/** Tokens that are assumed per piece. Providers that bill these pieces in tokens count fewer. */
const TOKENS_PER_PIECE = {
  picture: 8_192,
  /** This includes reading the results. OpenAI bills 8,000 tokens per search for some models. */
  run: 10_000,
  second: 50,
  character: 16,
  page: 3_000,
} as const;

const scaleFallbacks = (of: readonly FallbackUnit[], count: number): readonly FallbackUnit[] =>
  of.map(([unit]): FallbackUnit => [unit, count]);
const TOOL_RUN_FALLBACKS: readonly FallbackUnit[] = [
  ...oneForOne(
    "searches",
    "fetches",
    "file_searches",
    "map_searches",
    "code_sessions",
    "tool_runs",
  ),
  ["input", TOKENS_PER_PIECE.run],
];
const IMAGE_FALLBACKS: readonly FallbackUnit[] = [
  ["images", 1],
  ["megapixels", 4],
  ["image_out", TOKENS_PER_PIECE.picture],
  ["output", TOKENS_PER_PIECE.picture],
];

/**
 * Fallback units by unit. Tokens never fall back to pieces, because a price without any token line
 * is not a price per token.
 */
const FALLBACKS: { readonly [U in Unit]: readonly FallbackUnit[] } = {
  input: INPUT_FALLBACKS,
  cache_read: CACHE_READ_FALLBACKS,
  cache_read_audio: CACHE_READ_FALLBACKS,
  cache_read_image: CACHE_READ_FALLBACKS,
  cache_write_5m: INPUT_FALLBACKS,
  cache_write_30m: INPUT_FALLBACKS,
  cache_write_1h: INPUT_FALLBACKS,
  cache_write_12h: INPUT_FALLBACKS,
  output: OUTPUT_FALLBACKS,
  reasoning: OUTPUT_FALLBACKS,
  audio_in: INPUT_FALLBACKS,
  audio_out: OUTPUT_FALLBACKS,
  image_in: INPUT_FALLBACKS,
  image_out: OUTPUT_FALLBACKS,
  images: IMAGE_FALLBACKS,
  megapixels: IMAGE_FALLBACKS,
  searches: TOOL_RUN_FALLBACKS,
  fetches: TOOL_RUN_FALLBACKS,
  file_searches: TOOL_RUN_FALLBACKS,
  map_searches: TOOL_RUN_FALLBACKS,
  code_sessions: TOOL_RUN_FALLBACKS,
  tool_runs: TOOL_RUN_FALLBACKS,
  seconds: scaleFallbacks(INPUT_FALLBACKS, TOKENS_PER_PIECE.second),
  seconds_out: scaleFallbacks(OUTPUT_FALLBACKS, TOKENS_PER_PIECE.second),
  characters: [
    ...scaleFallbacks(INPUT_FALLBACKS, 1),
    ...scaleFallbacks(OUTPUT_FALLBACKS, TOKENS_PER_PIECE.character),
  ],
  pages: scaleFallbacks(INPUT_FALLBACKS, TOKENS_PER_PIECE.page),
  requests: [],
};

/**
 * Returns the highest rate that can replace the rate of this unit. Undefined if the price has no
 * such line.
 */
export function fallbackRate(
  unit: Unit,
  rate: (unit: Unit) => Fraction | undefined,
): Fraction | undefined {
  let most: Fraction | undefined;
  for (const [other, count] of FALLBACKS[unit]) {
    const found = rate(other);
    if (!found) continue;
    const at = multiplyFractions(found, { n: BigInt(count), d: 1n });
    if (!most || compareFractions(at, most) > 0) most = at;
  }
  return most;
}
