// Token counts. On this wire the prompt includes what was read from and written to caches, and the completion includes
// reasoning; canonical units do not overlap. Imitators differ in many small ways, and the total gives most of them away.
import type { UsageSeen } from "../../model/event.ts";
import { inputTokens, outputTokens, type Unit, type Usage } from "../../model/usage.ts";
import type { JsonObject } from "../../model/values.ts";
import type { ChatTraits } from "./dialect.ts";
import { count, number, object, present, text } from "../json.ts";
import { reportedTools } from "../reported-tools.ts";

const some = (n: number | undefined): number | undefined => (n === 0 ? undefined : n);

/** Undefined when the report cannot be believed: then it is as if there were none. */
export function usageOf(u: JsonObject, dialect: ChatTraits): Usage | undefined {
  const prompt = count(u["prompt_tokens"]);
  const completion = count(u["completion_tokens"]);
  if (prompt === undefined || completion === undefined) return undefined;
  const within = object(u["prompt_tokens_details"]) ?? object(u["prompt_token_details"]) ?? {};
  const without = object(u["completion_tokens_details"]) ?? {};
  const read =
    count(within["cached_tokens"]) ??
    count(u["cached_tokens"]) ??
    count(u["prompt_cache_hit_tokens"]) ??
    count(u["num_cached_tokens"]);
  const brief = count(within["cache_creation_input_tokens"]);
  const written = count(within["cache_write_tokens"]);
  const terms = object(within["cache_write_tokens_details"]) ?? {};
  const long = Math.min(count(terms["ttl_12h_tokens"]) ?? 0, written ?? 0);
  const reasoning = count(without["reasoning_tokens"]) ?? count(u["reasoning_tokens"]);

  const cached = (read ?? 0) + (brief ?? 0) + (written ?? 0);
  // More cached than prompted: this one counts its caches beside the prompt.
  const all = cached > prompt ? prompt + cached : prompt;
  const total = count(u["total_tokens"]);
  const beside = Math.max(0, (total ?? 0) - all - completion);
  const outside = dialect.reasoningOutside ? (reasoning ?? beside) : beside;
  const fresh = all - cached;
  const heard = Math.min(count(within["audio_tokens"]) ?? 0, fresh);
  const spoken = Math.min(count(without["audio_tokens"]) ?? 0, completion + outside);
  const rest = completion + outside - spoken;
  return present({
    input: fresh - heard,
    cache_read: read,
    cache_write_5m: brief ?? (dialect.cacheWrite === "5m" ? written : undefined),
    cache_write_30m:
      written === undefined || dialect.cacheWrite === "5m" ? undefined : written - long,
    cache_write_12h: some(long),
    output: rest,
    reasoning: reasoning === undefined ? undefined : Math.min(reasoning, rest),
    audio_in: some(heard),
    audio_out: some(spoken),
    ...reportedTools(u),
  } satisfies { [U in Unit]?: number | undefined });
}

/** A chunk's or answer's report: where it stands differs, and some say what it cost them. */
export function usageSeen(answer: JsonObject, dialect: ChatTraits): UsageSeen | undefined {
  const raw =
    object(answer["usage"]) ??
    object(object((answer["choices"] as readonly unknown[] | undefined)?.[0])?.["usage"]) ??
    object(object(answer["x_groq"])?.["usage"]);
  const usage = raw && usageOf(raw, dialect);
  if (!usage) return undefined;
  const cost = number(raw["cost"]) ?? number(object(raw["cost"])?.["total_cost"]);
  return present({
    type: "usage" as const,
    usage,
    model: text(answer["model"]),
    tier: text(answer["service_tier"]),
    // What a search costs goes by how much it brings.
    quality: text(raw["search_context_size"]),
    costNano:
      cost !== undefined && cost >= 0 && cost < 1e6 ? BigInt(Math.round(cost * 1e9)) : undefined,
  });
}

/** What was not reported is not told: 0 would say that the provider counted. */
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
  const some = present(of);
  return Object.keys(some).length > 0 ? { [name]: some } : {};
}
