// The one table of tools that run elsewhere than with the client: how they are declared, and by which feature policies
// know them. What is not known to be the client's own is hosted.
import type { Feature, Json, JsonObject } from "../../plugin/index.ts";
import { isTruthyFlag } from "../json-values.ts";
import { toSnakeCase } from "../tool-names.ts";

/** Lists of tools, and members that hold one tool. */
export const TOOL_PLACES: ReadonlySet<string> = new Set(["tools", "tool"]);

/** Types of tools that the client runs itself. */
const CLIENT_TOOL_TYPES: ReadonlySet<string> = new Set(["function", "custom", "namespace"]);

/** Typed by the messages protocol, with a date, and run by the client. */
const TYPED_CLIENT_TOOL =
  /^(?:bash|text_editor|memory|computer|computer_toolset|browser_toolset)_\d{8}$/;

/** Members by which a tool without a type says that it is the client's. */
const CLIENT_TOOL_MEMBERS = ["function", "name", "input_schema"];

/** The same where each kind of tool is a member of its own: others may stand beside it. A mark of a cache is no tool at all. */
const DECLARATION_MEMBERS: ReadonlySet<string> = new Set([
  "functionDeclarations",
  "function_declarations",
  "toolSpec",
  "tool_spec",
  "cachePoint",
  "cache_point",
]);

/** Since 2026 what was found on the web is filtered by running code, and that keeps things. */
const DYNAMIC_WEB_TOOL = /^(web_search|web_fetch)_20(?:2[6-9]|[3-9]\d)\d{4}$/;

const DATE_SUFFIX = /_(?:\d{8}|\d{4}_\d\d_\d\d)$/;

export const isTypedClientTool = (type: string): boolean => TYPED_CLIENT_TOOL.test(type);

/** The hosted tools that one declaration asks for; null: it is the client's own. */
export function hostedToolFeatures(tool: JsonObject): readonly Feature[] | null {
  const type = tool["type"];
  if (typeof type === "string" && type !== "") {
    if (CLIENT_TOOL_TYPES.has(type) || TYPED_CLIENT_TOOL.test(type)) return null;
    const dynamic = DYNAMIC_WEB_TOOL.exec(type);
    const plain: Feature = `hosted.${short(type.replace(DATE_SUFFIX, ""))}`;
    return dynamic ? [plain, `hosted.${dynamic[1]}_dynamic`] : [plain];
  }
  if (CLIENT_TOOL_MEMBERS.some((member) => Object.hasOwn(tool, member))) return null;
  // Elsewhere each kind of tool is a member of its own: { googleSearch: {} }.
  const members = Object.keys(tool);
  const others = members.filter((member) => !DECLARATION_MEMBERS.has(member));
  if (others.length === 0 && members.length > 0) return null;
  return others.map((member): Feature => `hosted.${short(toSnakeCase(member))}`);
}

/** No tool has a longer name, and only a log or an error reads one. */
const short = (name: string): string => name.slice(0, 64);

const isNonEmpty = (value: Json): boolean => !Array.isArray(value) || value.length > 0;

/** Members that are a hosted tool themselves, and which one, by what they say. */
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
