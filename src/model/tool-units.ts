// Tools that providers run, by the unit in which their runs are billed.
import type { Feature } from "./facts.ts";
import type { Unit } from "./usage.ts";

const UNIT_TOOLS: { readonly [unit in Unit]?: readonly string[] } = {
  searches: [
    "web_search",
    "web_search_preview",
    "google_search",
    "google_search_retrieval",
    "enterprise_web_search",
    "live_search",
    "browser_search",
    "x_search",
  ],
  fetches: ["web_fetch", "url_context", "visit_website", "fetch_url"],
  file_searches: ["file_search", "collections_search", "attachment_search", "retrieval"],
  map_searches: ["google_maps"],
  code_sessions: [
    "code_interpreter",
    "code_execution",
    "bash_code_execution",
    "text_editor_code_execution",
    "shell",
  ],
  images: ["image_generation"],
};

/**
 * Tools that the client runs, or that are billed only by their tokens, which the usage report
 * includes.
 */
const UNBILLED_TOOLS: readonly string[] = [
  "advisor",
  "apply_patch",
  "computer",
  "computer_use",
  "computer_use_preview",
  "connectors",
  "local_shell",
  "mcp",
  "mcp_toolset",
  "programmatic_tool_calling",
  "tool_search",
  "tool_search_tool_bm25",
  "tool_search_tool_regex",
  // Filter search results with code that is not billed separately.
  "web_search_dynamic",
  "web_fetch_dynamic",
];

const TOOL_UNIT: ReadonlyMap<string, Unit | undefined> = new Map([
  ...UNBILLED_TOOLS.map((tool) => [tool, undefined] as const),
  ...Object.entries(UNIT_TOOLS).flatMap(([unit, tools]) =>
    tools.map((tool) => [tool, unit as Unit] as const),
  ),
]);

/**
 * Returns the units in which the hosted tools among these features are billed. A tool that is not
 * in the table is billed as `tool_runs`.
 */
export function toolUnits(features: readonly Feature[]): readonly Unit[] {
  const units = new Set<Unit>();
  for (const feature of features) {
    if (!feature.startsWith("hosted.")) continue;
    const tool = feature.slice("hosted.".length);
    const unit = TOOL_UNIT.has(tool) ? TOOL_UNIT.get(tool) : "tool_runs";
    if (unit) units.add(unit);
  }
  return [...units];
}
