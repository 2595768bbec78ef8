import { inputTokens, outputTokens } from "../../model/usage.ts";
import type { JsonObject, Opt, Usage } from "../../plugin/index.ts";
import { asObject, omitUndefined } from "../json-values.ts";

/**
 * Returns a plausible count. Providers have sent negative, fractional, and absurd counts, which are
 * treated as missing.
 */
const count = (v: unknown): number | undefined =>
  typeof v === "number" && Number.isSafeInteger(v) && v >= 0 ? v : undefined;

/**
 * Parses usage. In this protocol, input includes tokens read from and written to caches, and output
 * includes reasoning. `tools` contains the runs of hosted tools, which are counted even if no
 * tokens are reported.
 */
export function usageOf(response: JsonObject, tools: Usage = {}): Usage | undefined {
  const u = asObject(response["usage"]);
  const all = count(u?.["input_tokens"]);
  const reportedOutput = count(u?.["output_tokens"]);
  if (!u || (all === undefined && reportedOutput === undefined))
    return Object.keys(tools).length > 0 ? tools : undefined;
  const inside = asObject(u["input_tokens_details"]);
  const read = count(inside?.["cached_tokens"]);
  const written = count(inside?.["cache_write_tokens"]);
  const terms = asObject(inside?.["cache_write_tokens_details"]);
  const long = Math.min(count(terms?.["ttl_12h_tokens"]) ?? 0, written ?? 0);
  const reasoning = count(asObject(u["output_tokens_details"])?.["reasoning_tokens"]);
  // Some servers report reasoning in addition to the output. The total reveals it.
  const beside = Math.max(0, (count(u["total_tokens"]) ?? 0) - (all ?? 0) - (reportedOutput ?? 0));
  const outside = reasoning !== undefined && beside === reasoning && beside > 0 ? beside : 0;
  return omitUndefined({
    input: all === undefined ? undefined : Math.max(0, all - (read ?? 0) - (written ?? 0)),
    cache_read: read,
    cache_write_30m: written === undefined ? undefined : written - long,
    cache_write_12h: long > 0 ? long : undefined,
    output: reportedOutput === undefined ? undefined : reportedOutput + outside,
    reasoning,
    ...tools,
  });
}

const cacheWriteTokens = (u: Usage): number =>
  (u.cache_write_5m ?? 0) +
  (u.cache_write_30m ?? 0) +
  (u.cache_write_1h ?? 0) +
  (u.cache_write_12h ?? 0);

/**
 * Encodes usage. Both detail objects are always present, because clients read them without a check.
 * Returns null, never zeros, if nothing was reported.
 */
export function usageTo(u: Opt<Usage>): JsonObject | null {
  if (!u || Object.values(u).every((n) => n === undefined)) return null;
  const input = inputTokens(u);
  const output = outputTokens(u);
  const long = (u.cache_write_12h ?? 0) + (u.cache_write_1h ?? 0);
  return {
    input_tokens: input,
    input_tokens_details: {
      cached_tokens: u.cache_read ?? 0,
      cache_write_tokens: cacheWriteTokens(u),
      ...(long > 0 && {
        cache_write_tokens_details: {
          ttl_30m_tokens: (u.cache_write_30m ?? 0) + (u.cache_write_5m ?? 0),
          ttl_12h_tokens: long,
        },
      }),
    },
    output_tokens: output,
    output_tokens_details: { reasoning_tokens: u.reasoning ?? 0 },
    total_tokens: input + output,
  };
}
