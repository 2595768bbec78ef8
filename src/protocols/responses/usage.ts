import { inputTokens, outputTokens, type Unit, type Usage } from "../../model/usage.ts";
import type { JsonObject, Opt } from "../../model/values.ts";
import { asObject, omitUndefined, asCount, asList, asText } from "../json-values.ts";
import { maxRuns, reportedToolRuns } from "../reported-tool-runs.ts";

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

// Counts runs of hosted tools in a response. The output has an item for each run, and some
// providers also count runs in the usage report.

/** Units of tool runs that a response reveals. */
export const COUNTED_TOOL_UNITS: readonly Unit[] = [
  "searches",
  "file_searches",
  "code_sessions",
  "images",
  "tool_runs",
];

/** Items of tools that the client runs or that are billed only by their tokens. */
const UNBILLED_ITEMS: ReadonlySet<string> = new Set([
  "apply_patch_call",
  "computer_call",
  "custom_tool_call",
  "function_call",
  "local_shell_call",
  "mcp_call",
  "program_call",
  "tool_search_call",
]);

/**
 * Memory limit of a container. Containers are billed by memory: 4 GB cost four times as much as 1
 * GB.
 */
const MEMORY = /^(\d{1,4})g$/i;

/** Maximum number of containers that are distinguished per response. */
const MOST_CONTAINERS = 1_000;

export class ResponsesToolCounts {
  readonly #runs: { [unit in Unit]?: number } = {};
  readonly #containers = new Set<string>();
  #unnamedContainers = 0;

  /** Called once for each finished item. Returns whether the item is a tool run. */
  item(item: JsonObject): boolean {
    const type = asText(item["type"]) ?? "";
    if (!type.endsWith("_call") || UNBILLED_ITEMS.has(type)) return false;
    switch (type) {
      case "web_search_call":
        return this.#add("searches", searchesIn(asObject(item["action"])));
      case "x_search_call":
        return this.#add("searches", 1);
      case "file_search_call":
        return this.#add("file_searches", 1);
      case "image_generation_call":
        return this.#add("images", item["status"] === "failed" ? 0 : 1);
      case "code_interpreter_call":
        return this.#code(asText(item["container_id"]));
      case "shell_call": {
        const environment = asObject(item["environment"]);
        const container = asText(environment?.["container_id"]);
        return container !== undefined && this.#code(container);
      }
      default:
        return this.#add("tool_runs", 1);
    }
  }

  /**
   * Returns all known runs: the runs of the items received up to now and the runs in the report.
   */
  usage(response: Opt<JsonObject>): Usage {
    const sessions = this.#containers.size + this.#unnamedContainers;
    const items: Usage = {
      ...this.#runs,
      ...(sessions > 0 && { code_sessions: sessions * memoryIn(response) }),
    };
    const web = asObject(asObject(response?.["tool_usage"])?.["web_search"]);
    const searches = asCount(web?.["num_requests"]) ?? 0;
    const reported = maxRuns(reportedToolRuns(asObject(response?.["usage"])), {
      ...(searches > 0 && { searches }),
    });
    return maxRuns(items, reported);
  }

  #add(unit: Unit, n: number): boolean {
    if (n > 0) this.#runs[unit] = (this.#runs[unit] ?? 0) + n;
    return n > 0;
  }

  #code(container: string | undefined): boolean {
    if (container === undefined || this.#containers.size >= MOST_CONTAINERS)
      this.#unnamedContainers++;
    else this.#containers.add(container);
    return true;
  }
}

/**
 * Returns the number of searches. Opening a page and finding text in it are billed by tokens only.
 */
function searchesIn(action: Opt<JsonObject>): number {
  const type = asText(action?.["type"]) ?? "search";
  return type === "search" ? Math.max(1, asList(action?.["queries"]).length) : 0;
}

/** Returns the memory, in GB, of the largest container that the request configured. */
function memoryIn(response: Opt<JsonObject>): number {
  let most = 1;
  for (const raw of asList(response?.["tools"])) {
    const tool = asObject(raw);
    for (const place of [tool?.["container"], tool?.["environment"]]) {
      const limit = MEMORY.exec(asText(asObject(place)?.["memory_limit"]) ?? "");
      if (limit) most = Math.max(most, Number(limit[1]));
    }
  }
  return most;
}
