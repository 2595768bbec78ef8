// Stand-in rates: what a counted unit is estimated at when its price has no line for it.
import type { Unit } from "../model/usage.ts";
import { compare, times, type Fraction } from "./decimal.ts";

/** A unit whose line may stand in, and how many of it one unit is taken to be. */
type StandIn = readonly [unit: Unit, count: number];

const each = (...units: Unit[]): readonly StandIn[] => units.map((unit): StandIn => [unit, 1]);

const WRITES = [
  "cache_write_5m",
  "cache_write_30m",
  "cache_write_1h",
  "cache_write_12h",
] as const satisfies readonly Unit[];
const READ = each("input", "audio_in", "image_in", ...WRITES);
const WRITTEN = each("output", "reasoning", "audio_out", "image_out");

/** Tokens that one piece is taken to be. Providers that bill these pieces in tokens count fewer. */
const TOKENS = {
  picture: 8_192,
  /** Reading results: OpenAI bills some models 8,000 tokens for each search. */
  run: 10_000,
  second: 50,
  character: 16,
  page: 3_000,
} as const;

const tokens = (of: readonly StandIn[], count: number): readonly StandIn[] =>
  of.map(([unit]): StandIn => [unit, count]);
const RUN: readonly StandIn[] = [
  ...each("searches", "fetches", "file_searches", "map_searches", "code_sessions", "tool_runs"),
  ["input", TOKENS.run],
];
const PICTURE: readonly StandIn[] = [
  ["images", 1],
  ["megapixels", 4],
  ["image_out", TOKENS.picture],
  ["output", TOKENS.picture],
];

/** Tokens never become pieces: a price without any token line is not a price of tokens. */
const STAND_INS: { readonly [U in Unit]: readonly StandIn[] } = {
  input: READ,
  // A read of the cache is no write to it.
  cache_read: each("input", "audio_in", "image_in"),
  cache_write_5m: READ,
  cache_write_30m: READ,
  cache_write_1h: READ,
  cache_write_12h: READ,
  output: WRITTEN,
  reasoning: WRITTEN,
  audio_in: READ,
  audio_out: WRITTEN,
  image_in: READ,
  image_out: WRITTEN,
  images: PICTURE,
  megapixels: PICTURE,
  searches: RUN,
  fetches: RUN,
  file_searches: RUN,
  map_searches: RUN,
  code_sessions: RUN,
  tool_runs: RUN,
  seconds: tokens(READ, TOKENS.second),
  seconds_out: tokens(WRITTEN, TOKENS.second),
  characters: [...tokens(READ, 1), ...tokens(WRITTEN, TOKENS.character)],
  pages: tokens(READ, TOKENS.page),
  requests: [],
};

/** The highest rate that may stand in for one of this unit. Undefined: the price has no line that could. */
export function standIn(
  unit: Unit,
  rate: (unit: Unit) => Fraction | undefined,
): Fraction | undefined {
  let most: Fraction | undefined;
  for (const [other, count] of STAND_INS[unit]) {
    const found = rate(other);
    if (!found) continue;
    const at = times(found, { n: BigInt(count), d: 1n });
    if (!most || compare(at, most) > 0) most = at;
  }
  return most;
}
