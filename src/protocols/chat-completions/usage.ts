// Converts token counts. In this protocol, the prompt includes tokens read from and written to
// caches, and the completion includes reasoning. Canonical units do not overlap. Compatible
// backends differ in many details, most of which can be detected from the total.
import type { UsageReport } from "../../model/event.ts";
import { inputTokens, outputTokens, type Unit, type Usage } from "../../model/usage.ts";
import type { JsonObject } from "../../model/values.ts";
import type { ChatTraits } from "./dialect.ts";
import { asCount, asNumber, asObject, omitUndefined, asText } from "../json-values.ts";
import { reportedToolRuns } from "../reported-tool-runs.ts";

const some = (n: number | undefined): number | undefined => (n === 0 ? undefined : n);

/**
 * Returns the canonical usage. Returns undefined if the report is not credible, so that it is
 * treated as missing.
 */
export function usageOf(u: JsonObject, dialect: ChatTraits): Usage | undefined {
  const prompt = asCount(u["prompt_tokens"]);
  const completion = asCount(u["completion_tokens"]);
  if (prompt === undefined || completion === undefined) return undefined;
  const within = asObject(u["prompt_tokens_details"]) ?? asObject(u["prompt_token_details"]) ?? {};
  const without = asObject(u["completion_tokens_details"]) ?? {};
  const read =
    asCount(within["cached_tokens"]) ??
    asCount(u["cached_tokens"]) ??
    asCount(u["prompt_cache_hit_tokens"]) ??
    asCount(u["num_cached_tokens"]);
  const brief = asCount(within["cache_creation_input_tokens"]);
  const written = asCount(within["cache_write_tokens"]);
  const terms = asObject(within["cache_write_tokens_details"]) ?? {};
  const long = Math.min(asCount(terms["ttl_12h_tokens"]) ?? 0, written ?? 0);
  const reasoning = asCount(without["reasoning_tokens"]) ?? asCount(u["reasoning_tokens"]);

  const cached = (read ?? 0) + (brief ?? 0) + (written ?? 0);
  // If more tokens are cached than prompted, the backend counts caches in addition to the prompt.
  const all = cached > prompt ? prompt + cached : prompt;
  const total = asCount(u["total_tokens"]);
  const beside = Math.max(0, (total ?? 0) - all - completion);
  const outside = dialect.reasoningNotInOutput ? (reasoning ?? beside) : beside;
  const fresh = all - cached;
  const audioInput = Math.min(asCount(within["audio_tokens"]) ?? 0, fresh);
  const spoken = Math.min(asCount(without["audio_tokens"]) ?? 0, completion + outside);
  const rest = completion + outside - spoken;
  return omitUndefined({
    input: fresh - audioInput,
    cache_read: read,
    cache_write_5m: brief ?? (dialect.cacheWriteTtl === "5m" ? written : undefined),
    cache_write_30m:
      written === undefined || dialect.cacheWriteTtl === "5m" ? undefined : written - long,
    cache_write_12h: some(long),
    output: rest,
    reasoning: reasoning === undefined ? undefined : Math.min(reasoning, rest),
    audio_in: some(audioInput),
    audio_out: some(spoken),
    ...reportedToolRuns(u),
  } satisfies { [U in Unit]?: number | undefined });
}

/**
 * Returns the usage report of a chunk or response. Its position differs between backends, and some
 * report their own cost.
 */
export function usageSeen(answer: JsonObject, dialect: ChatTraits): UsageReport | undefined {
  const raw =
    asObject(answer["usage"]) ??
    asObject(asObject((answer["choices"] as readonly unknown[] | undefined)?.[0])?.["usage"]) ??
    asObject(asObject(answer["x_groq"])?.["usage"]);
  const usage = raw && usageOf(raw, dialect);
  if (!usage) return undefined;
  const cost = asNumber(raw["cost"]) ?? asNumber(asObject(raw["cost"])?.["total_cost"]);
  return omitUndefined({
    type: "usage" as const,
    usage,
    model: asText(answer["model"]),
    tier: asText(answer["service_tier"]),
    // The price of a search depends on the amount of content that it returns.
    quality: asText(raw["search_context_size"]),
    costNano:
      cost !== undefined && cost >= 0 && cost < 1e6 ? BigInt(Math.round(cost * 1e9)) : undefined,
  });
}

/**
 * Encodes usage for a client. Counts that the provider did not report are omitted, because 0 would
 * mean that it counted them.
 */
export function usageTo(u: Usage): JsonObject {
  const prompt = inputTokens(u);
  const completion = outputTokens(u);
  const long = (u.cache_write_1h ?? 0) + (u.cache_write_12h ?? 0);
  const written = (u.cache_write_5m ?? 0) + (u.cache_write_30m ?? 0) + long;
  const wrote = u.cache_write_5m ?? u.cache_write_30m ?? u.cache_write_1h ?? u.cache_write_12h;
  return {
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: prompt + completion,
    ...details("prompt_tokens_details", {
      cached_tokens: u.cache_read,
      cache_write_tokens: wrote === undefined ? undefined : written,
      cache_write_tokens_details:
        long > 0 ? { ttl_30m_tokens: written - long, ttl_12h_tokens: long } : undefined,
      audio_tokens: u.audio_in,
    }),
    ...details("completion_tokens_details", {
      reasoning_tokens: u.reasoning,
      audio_tokens: u.audio_out,
    }),
  };
}

function details(name: string, of: JsonObject): JsonObject {
  const some = omitUndefined(of);
  return Object.keys(some).length > 0 ? { [name]: some } : {};
}
