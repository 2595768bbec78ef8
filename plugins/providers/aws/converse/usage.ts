// Token counts. What was read from a cache or written to one stands beside the input, as canonical units have it.
import type { JsonObject, Usage } from "tollgate/plugin";
import { countOf, listOf, objectOf, some } from "../json.ts";

export function usageOf(report: JsonObject): Usage {
  const written = countOf(report["cacheWriteInputTokens"]);
  let hour = 0;
  for (const detail of listOf(report["cacheDetails"]).map(objectOf))
    if (detail?.["ttl"] === "1h") hour += countOf(detail["inputTokens"]) ?? 0;
  const long = Math.min(hour, written ?? 0);
  const counts: Usage = {
    input: countOf(report["inputTokens"]),
    cache_read: countOf(report["cacheReadInputTokens"]),
    cache_write_5m: written === undefined ? undefined : written - long,
    cache_write_1h: long > 0 ? long : undefined,
    output: countOf(report["outputTokens"]),
  };
  return (some(counts) ?? {}) as Usage;
}
