// Token counts. `input_tokens` of this protocol excludes cached tokens, as the common units do.
import type { UsageReport } from "../../model/event.ts";
import { inputTokens, outputTokens, type Unit, type Usage } from "../../model/usage.ts";
import type { JsonObject, Opt } from "../../model/values.ts";
import { readPricingAttributes } from "../cost-analysis.ts";
import { isObject, asText } from "../json-values.ts";

type Counts = { -readonly [U in Unit]?: Opt<number> };

/**
 * Largest plausible count. No message has a billion tokens, but backends have sent negative and
 * broken counts. Implausible counts are treated as missing.
 */
const MOST = 1e9;

const count = (value: unknown): number | undefined =>
  Number.isSafeInteger(value) && (value as number) >= 0 && (value as number) <= MOST
    ? (value as number)
    : undefined;

const atMost = (part: number | undefined, whole: number | undefined): number | undefined =>
  part !== undefined && whole !== undefined ? Math.min(part, whole) : part;

/**
 * Parses usage. In `message_start`, `message_delta`, and whole responses it is cumulative for the
 * whole message. Only the first and the last report contain the cache lifetimes, so the lifetimes
 * of `earlier` stay valid.
 */
function usageOf(raw: JsonObject, earlier: Usage = {}): Usage {
  const split = isObject(raw["cache_creation"]) ? raw["cache_creation"] : {};
  const details = isObject(raw["output_tokens_details"]) ? raw["output_tokens_details"] : {};
  const tools = isObject(raw["server_tool_use"]) ? raw["server_tool_use"] : {};
  const written = count(raw["cache_creation_input_tokens"]);
  const hour = count(split["ephemeral_1h_input_tokens"]) ?? earlier.cache_write_1h;
  const output = count(raw["output_tokens"]);
  const usage: Counts = {
    input: count(raw["input_tokens"]),
    cache_read: count(raw["cache_read_input_tokens"]),
    cache_write_5m:
      count(split["ephemeral_5m_input_tokens"]) ??
      (written === undefined ? undefined : Math.max(0, written - (hour ?? 0))),
    cache_write_1h: hour,
    output,
    reasoning: atMost(count(details["thinking_tokens"]), output),
    searches: count(tools["web_search_requests"]),
    fetches: count(tools["web_fetch_requests"]) || undefined,
  };
  for (const unit in usage) if (usage[unit as Unit] === undefined) delete usage[unit as Unit];
  return usage;
}

/**
 * Returns the billed usage per model. If a report has `iterations`, its totals cover only the last
 * sampling. Compaction, a declined model, or an advisor has its own entry, which is billed at the
 * price of that entry's model.
 */
export function parseBilledUsage(
  raw: JsonObject,
  model: string | undefined,
  earlier?: Usage,
): UsageReport[] {
  const tier = asText(raw["service_tier"]);
  const facts = readPricingAttributes(raw);
  const whole: UsageReport = {
    type: "usage",
    usage: usageOf(raw, earlier),
    model,
    ...(tier && { tier }),
    ...(facts && { pricingAttributes: facts }),
  };
  const entries = Array.isArray(raw["iterations"]) ? raw["iterations"].filter(isObject) : [];
  if (entries.length === 0) return [whole];
  const sums = new Map<string | undefined, Usage>();
  let last = model;
  for (const entry of entries) {
    const of = asText(entry["model"]) ?? model;
    sums.set(of, add(sums.get(of) ?? {}, usageOf(entry)));
    if (entry["type"] === "message" || entry["type"] === "fallback_message") last = of;
  }
  // Details such as thinking and searches are only in the report. Counts that the entries lack
  // belong to the report's own model.
  sums.set(last, most(whole.usage, sums.get(last) ?? {}));
  return [...sums].map(([of, usage]) => ({ ...whole, usage, model: of }));
}

const add = (a: Usage, b: Usage): Usage => {
  const sum: Counts = { ...a };
  for (const unit in b) sum[unit as Unit] = (sum[unit as Unit] ?? 0) + (b[unit as Unit] ?? 0);
  return sum;
};

const most = (a: Usage, b: Usage): Usage => {
  const max: Counts = { ...a };
  for (const unit in b) max[unit as Unit] = Math.max(max[unit as Unit] ?? 0, b[unit as Unit] ?? 0);
  return max;
};

/**
 * Returns the usage of the first event without its output counts. These are placeholders, and a
 * client must not be billed for them if the stream is truncated.
 */
export function startUsage(raw: JsonObject): JsonObject {
  const { output_tokens: _output, output_tokens_details: _details, ...read } = raw;
  return read;
}

/**
 * Encodes usage with every key, as SDKs expect. Unreported values are null where the SDK types
 * allow it, never 0. Keys that must be numbers are numbers.
 */
export function usageTo(usage: Usage): JsonObject {
  const brief = sum(usage.cache_write_5m, usage.cache_write_30m);
  const long = sum(usage.cache_write_1h, usage.cache_write_12h);
  const written = sum(brief, long);
  return {
    input_tokens: inputTokens(usage) - (usage.cache_read ?? 0) - (written ?? 0),
    cache_creation_input_tokens: written ?? null,
    cache_read_input_tokens: usage.cache_read ?? null,
    cache_creation:
      written === undefined
        ? null
        : { ephemeral_5m_input_tokens: brief ?? 0, ephemeral_1h_input_tokens: long ?? 0 },
    output_tokens: outputTokens(usage),
    output_tokens_details:
      usage.reasoning === undefined ? null : { thinking_tokens: usage.reasoning },
    server_tool_use:
      usage.searches === undefined
        ? null
        : { web_search_requests: usage.searches, web_fetch_requests: usage.fetches ?? 0 },
    service_tier: null,
    speed: null,
    inference_geo: null,
  };
}

const sum = (a: number | undefined, b: number | undefined): number | undefined =>
  a === undefined && b === undefined ? undefined : (a ?? 0) + (b ?? 0);

// Counts runs of server tools in a message. Each run begins with its own block. Usage reports count
// only searches and fetches, and not all backends of this protocol report them.

/** Units of tool runs that a message reveals. */
export const COUNTED_TOOL_UNITS: readonly Unit[] = [
  "searches",
  "fetches",
  "code_sessions",
  "tool_runs",
];

const CODE: ReadonlySet<string> = new Set([
  "code_execution",
  "bash_code_execution",
  "text_editor_code_execution",
]);

/** Tools that are billed only by their tokens. */
const UNBILLED_TOOLS: ReadonlySet<string> = new Set([
  "advisor",
  "tool_search_tool_bm25",
  "tool_search_tool_regex",
]);

export class MessagesToolCounts {
  readonly #runs: { [unit in Unit]?: number } = {};
  #ranCode = false;
  /** Whether code ran to filter search results, which is not billed. */
  #filters = false;

  /**
   * Called once for each block that begins. Returns whether the block changes the billed counts.
   */
  block(block: JsonObject): boolean {
    if (block["type"] !== "server_tool_use") return false;
    const { caller } = block;
    const name = asText(block["name"]) ?? "";
    this.#filters ||=
      isObject(caller) && (asText(caller["type"]) ?? "").startsWith("code_execution");
    if (UNBILLED_TOOLS.has(name)) return false;
    // The end of the response shows whether the code only filters results.
    if (CODE.has(name)) return !(this.#ranCode = true);
    return this.#add(UNITS.get(name) ?? "tool_runs");
  }

  /** Returns the runs up to now. If a report has counted a unit too, the larger number is used. */
  current(reported: Usage): Usage {
    return larger(this.#runs, reported, Object.keys(this.#runs));
  }

  /**
   * Returns a report with the runs that it lacks. All code in a message runs in one container, so
   * it counts as one session.
   */
  final(reported: Usage): Usage {
    const code = this.#ranCode && !this.#filters && { code_sessions: 1 };
    const runs = { ...this.#runs, ...code };
    return { ...reported, ...larger(runs, reported, Object.keys(runs)) };
  }

  #add(unit: Unit): true {
    this.#runs[unit] = (this.#runs[unit] ?? 0) + 1;
    return true;
  }
}

const UNITS: ReadonlyMap<string, Unit> = new Map([
  ["web_search", "searches"],
  ["web_fetch", "fetches"],
]);

const larger = (a: Usage, b: Usage, units: readonly string[]): Usage =>
  Object.fromEntries(
    (units as readonly Unit[]).map((unit) => [unit, Math.max(a[unit] ?? 0, b[unit] ?? 0)]),
  );
