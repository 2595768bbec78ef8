// Runs of tools that the provider runs, where its usage report counts them. Several providers count them beside the tokens, each by
// names of its own.
import type { Unit, Usage } from "../model/usage.ts";
import type { JsonObject, Opt } from "../model/values.ts";
import { count, object } from "./json.ts";

const NAMES: readonly (readonly [Unit, readonly (readonly [place: string, name: string])[]])[] = [
  [
    "searches",
    [
      ["", "num_search_queries"],
      ["", "num_sources_used"],
      ["server_tool_use", "web_search_requests"],
      ["server_side_tool_usage_details", "web_search_calls"],
      ["server_side_tool_usage_details", "x_search_calls"],
    ],
  ],
  ["fetches", [["server_tool_use", "web_fetch_requests"]]],
  [
    "file_searches",
    [
      ["server_side_tool_usage_details", "file_search_calls"],
      ["server_side_tool_usage_details", "collections_search_calls"],
    ],
  ],
  ["code_sessions", [["server_side_tool_usage_details", "code_interpreter_calls"]]],
  [
    "tool_runs",
    [
      ["server_side_tool_usage_details", "document_search_calls"],
      ["server_side_tool_usage_details", "attachment_search_calls"],
    ],
  ],
];

/** Units without a run are left out. */
export function reportedTools(usage: Opt<JsonObject>): Usage {
  const runs: { [unit in Unit]?: number } = {};
  if (!usage) return runs;
  for (const [unit, names] of NAMES)
    for (const [place, name] of names) {
      const of = place === "" ? usage : object(usage[place]);
      const n = count(of?.[name]) ?? 0;
      if (n > 0) runs[unit] = (runs[unit] ?? 0) + n;
    }
  return runs;
}

/** Of two counts of the same runs the larger one, unit by unit. */
export function mostRuns(a: Usage, b: Usage): Usage {
  const most: { [unit in Unit]?: number } = {};
  for (const unit of new Set([...Object.keys(a), ...Object.keys(b)]) as Set<Unit>)
    most[unit] = Math.max(a[unit] ?? 0, b[unit] ?? 0);
  return most;
}
