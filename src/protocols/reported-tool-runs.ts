// Reads the runs of hosted tools from a provider's usage report. Several providers count them next
// to the tokens, each under different names.
import type { Unit, Usage } from "../model/usage.ts";
import type { JsonObject, Opt } from "../model/values.ts";
import { asCount, asObject } from "./json-values.ts";

type Names = readonly (readonly [name: string, unit: Unit])[];

const TOP: Names = [
  ["num_search_queries", "searches"],
  ["num_sources_used", "searches"],
];
/** Counts inside a nested object, by the name of that object. */
const NESTED: readonly (readonly [place: string, names: Names])[] = [
  [
    "server_tool_use",
    [
      ["web_search_requests", "searches"],
      ["web_fetch_requests", "fetches"],
    ],
  ],
  [
    "server_side_tool_usage_details",
    [
      ["web_search_calls", "searches"],
      ["x_search_calls", "searches"],
      ["file_search_calls", "file_searches"],
      ["collections_search_calls", "file_searches"],
      ["code_interpreter_calls", "code_sessions"],
      ["document_search_calls", "tool_runs"],
      ["attachment_search_calls", "tool_runs"],
    ],
  ],
];

/** Returns the reported runs by unit. Units without runs are omitted. */
export function reportedToolRuns(usage: Opt<JsonObject>): Usage {
  const runs: { [unit in Unit]?: number } = {};
  if (!usage) return runs;
  addRuns(runs, usage, TOP);
  for (const [place, names] of NESTED) {
    // Fast path: most reports contain no tool counts.
    if (usage[place] === undefined) continue;
    const of = asObject(usage[place]);
    if (of) addRuns(runs, of, names);
  }
  return runs;
}

function addRuns(runs: { [unit in Unit]?: number }, counts: JsonObject, names: Names): void {
  for (const [name, unit] of names) {
    const n = counts[name] === undefined ? 0 : (asCount(counts[name]) ?? 0);
    if (n > 0) runs[unit] = (runs[unit] ?? 0) + n;
  }
}

/** Returns the larger of two counts of the same runs, for each unit. */
export function maxRuns(a: Usage, b: Usage): Usage {
  const most: { [unit in Unit]?: number } = {};
  for (const unit of new Set([...Object.keys(a), ...Object.keys(b)]) as Set<Unit>)
    most[unit] = Math.max(a[unit] ?? 0, b[unit] ?? 0);
  return most;
}
