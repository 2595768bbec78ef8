// The table of hosted tools, which run at a provider and not at the client. It defines how they are
// declared and which feature name data policies use for each. A tool counts as hosted unless it is
// known to run at the client.
import type { Feature, Json, JsonObject } from "../../plugin/index.ts";
import { isTruthyFlag } from "../json-values.ts";
import { toSnakeCase } from "../tool-calls.ts";

/** Members that hold a list of tools or one tool. */
export const TOOL_PLACES: ReadonlySet<string> = new Set(["tools", "tool"]);

/** Tool types that the client runs. */
const CLIENT_TOOL_TYPES: ReadonlySet<string> = new Set(["function", "custom", "namespace"]);

/** Types of the messages protocol that carry a date suffix and that the client runs. */
const TYPED_CLIENT_TOOL =
  /^(?:bash|text_editor|memory|computer|computer_toolset|browser_toolset)_\d{8}$/;

/** Members that mark a tool without a `type` as one that the client runs. */
const CLIENT_TOOL_MEMBERS = ["function", "name", "input_schema"];

/**
 * Client-side members in protocols where each tool type is a member of the declaration. One
 * declaration can have several such members. A cache mark among them is not a tool.
 */
const DECLARATION_MEMBERS: ReadonlySet<string> = new Set([
  "functionDeclarations",
  "function_declarations",
  "toolSpec",
  "tool_spec",
  "cachePoint",
  "cache_point",
]);

/**
 * Web tools dated 2026 or later. They filter results by running code, and code execution stores
 * data.
 */
const DYNAMIC_WEB_TOOL = /^(web_search|web_fetch)_20(?:2[6-9]|[3-9]\d)\d{4}$/;

const DATE_SUFFIX = /_(?:\d{8}|\d{4}_\d\d_\d\d)$/;

export const isTypedClientTool = (type: string): boolean => TYPED_CLIENT_TOOL.test(type);

/**
 * Returns the features of the hosted tools that one declaration requests. Returns null if the
 * client runs the tool.
 */
export function hostedToolFeatures(tool: JsonObject): readonly Feature[] | null {
  const type = tool["type"];
  if (typeof type === "string" && type !== "") {
    if (CLIENT_TOOL_TYPES.has(type) || TYPED_CLIENT_TOOL.test(type)) return null;
    const dynamic = DYNAMIC_WEB_TOOL.exec(type);
    const plain: Feature = `hosted.${short(type.replace(DATE_SUFFIX, ""))}`;
    return dynamic ? [plain, `hosted.${dynamic[1]}_dynamic`] : [plain];
  }
  if (CLIENT_TOOL_MEMBERS.some((member) => Object.hasOwn(tool, member))) return null;
  // In other protocols each tool type is a member: `{ googleSearch: {} }`.
  const members = Object.keys(tool);
  const others = members.filter((member) => !DECLARATION_MEMBERS.has(member));
  if (others.length === 0 && members.length > 0) return null;
  return others.map((member): Feature => `hosted.${short(toSnakeCase(member))}`);
}

/**
 * Limits a name to 64 characters. No known tool name is longer, and the result is only used in logs
 * and errors.
 */
const short = (name: string): string => name.slice(0, 64);

const isNonEmpty = (value: Json): boolean => !Array.isArray(value) || value.length > 0;

/**
 * Members that enable a hosted tool by themselves. Each function returns the features that the
 * member's value enables.
 */
export const HOSTED_FIELD_RULES: { readonly [word: string]: (value: Json) => readonly Feature[] } =
  {
    connectors: (value) => (isNonEmpty(value) ? ["hosted.connectors"] : []),
    enable_search: (value) => (isTruthyFlag(value) ? ["hosted.web_search"] : []),
    mcp_servers: (value) => (isNonEmpty(value) ? ["hosted.mcp"] : []),
    mcpServers: (value) => (isNonEmpty(value) ? ["hosted.mcp"] : []),
    plugins: (value) =>
      (Array.isArray(value) ? (value as readonly Json[]) : [value]).map((one): Feature =>
        pluginFeature(one) === "web" ? "hosted.web_search" : `hosted.plugin_${pluginFeature(one)}`,
      ),
    search_parameters: (value) =>
      (value as JsonObject)["mode"] === "off" ? [] : ["hosted.live_search"],
    web_search: (value) => (value === false ? [] : ["hosted.web_search"]),
    web_search_options: () => ["hosted.web_search"],
  };

const pluginFeature = (plugin: Json): string => {
  const id = typeof plugin === "string" ? plugin : (plugin as JsonObject | null)?.["id"];
  return typeof id === "string" && id !== "" ? short(id) : "unnamed";
};

export const HOSTED_FIELDS: readonly string[] = Object.keys(HOSTED_FIELD_RULES);
