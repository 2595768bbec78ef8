// The one table of tools that run elsewhere than with the client: how they are declared, and by which feature policies
// know them. What is not known to be the client's own is hosted.
import type { Feature, Json, JsonObject } from "../../plugin/index.ts";
import { isOn } from "../json.ts";
import { snake } from "../names.ts";

/** Lists of tools, and members that hold one tool. */
export const TOOL_PLACES: ReadonlySet<string> = new Set(["tools", "tool"]);

/** Types of tools that the client runs itself. */
const OWN: ReadonlySet<string> = new Set(["function", "custom", "namespace"]);

/** Typed by the messages protocol, with a date, and run by the client. */
const TYPED = /^(?:bash|text_editor|memory|computer|computer_toolset|browser_toolset)_\d{8}$/;

/** Members by which a tool without a type says that it is the client's. */
const DECLARED = ["function", "name", "input_schema"];

/** The same where each kind of tool is a member of its own: others may stand beside it. A mark of a cache is no tool at all. */
const DECLARATIONS: ReadonlySet<string> = new Set([
  "functionDeclarations",
  "function_declarations",
  "toolSpec",
  "tool_spec",
  "cachePoint",
  "cache_point",
]);

/** Since 2026 what was found on the web is filtered by running code, and that keeps things. */
const DYNAMIC = /^(web_search|web_fetch)_20(?:2[6-9]|[3-9]\d)\d{4}$/;

const DATED = /_(?:\d{8}|\d{4}_\d\d_\d\d)$/;

export const isTyped = (type: string): boolean => TYPED.test(type);

/** The hosted tools that one declaration asks for; null: it is the client's own. */
export function hostedBy(tool: JsonObject): readonly Feature[] | null {
  const type = tool["type"];
  if (typeof type === "string" && type !== "") {
    if (OWN.has(type) || TYPED.test(type)) return null;
    const dynamic = DYNAMIC.exec(type);
    const plain: Feature = `hosted.${short(type.replace(DATED, ""))}`;
    return dynamic ? [plain, `hosted.${dynamic[1]}_dynamic`] : [plain];
  }
  if (DECLARED.some((member) => Object.hasOwn(tool, member))) return null;
  // Elsewhere each kind of tool is a member of its own: { googleSearch: {} }.
  const members = Object.keys(tool);
  const others = members.filter((member) => !DECLARATIONS.has(member));
  if (others.length === 0 && members.length > 0) return null;
  return others.map((member): Feature => `hosted.${short(snake(member))}`);
}

/** No tool has a longer name, and only a log or an error reads one. */
const short = (name: string): string => name.slice(0, 64);

const some = (value: Json): boolean => !Array.isArray(value) || value.length > 0;

/** Members that are a hosted tool themselves, and which one, by what they say. */
export const HOSTED: { readonly [word: string]: (value: Json) => readonly Feature[] } = {
  connectors: (value) => (some(value) ? ["hosted.connectors"] : []),
  enable_search: (value) => (isOn(value) ? ["hosted.web_search"] : []),
  mcp_servers: (value) => (some(value) ? ["hosted.mcp"] : []),
  mcpServers: (value) => (some(value) ? ["hosted.mcp"] : []),
  plugins: (value) =>
    (Array.isArray(value) ? (value as readonly Json[]) : [value]).map((one): Feature =>
      idOf(one) === "web" ? "hosted.web_search" : `hosted.plugin_${idOf(one)}`,
    ),
  search_parameters: (value) =>
    (value as JsonObject)["mode"] === "off" ? [] : ["hosted.live_search"],
  web_search: (value) => (value === false ? [] : ["hosted.web_search"]),
  web_search_options: () => ["hosted.web_search"],
};

const idOf = (plugin: Json): string => {
  const id = typeof plugin === "string" ? plugin : (plugin as JsonObject | null)?.["id"];
  return typeof id === "string" && id !== "" ? short(id) : "unnamed";
};

export const HOSTED_FIELDS: readonly string[] = Object.keys(HOSTED);
