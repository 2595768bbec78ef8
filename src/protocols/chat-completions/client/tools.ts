// Encodes tool declarations and the tool choice.
import { indexByName } from "../../tool-calls.ts";
import { rejectTool } from "../../tool-declarations.ts";
import type { ChatRequest, Json, JsonObject, Tool } from "../../../plugin/index.ts";
import { asObject, omitUndefined, asText } from "../../json-values.ts";
import { sourceOf, ID } from "../constants.ts";
import type { ContentContext } from "./content.ts";

export function toWireTool(
  tool: Tool,
  to: ContentContext,
  name: (n: string) => string,
): Json | undefined {
  const from = sourceOf<Json>(tool);
  if (from !== undefined && !(tool.type === "custom" && to.traits.customTools === false))
    return from;
  switch (tool.type) {
    case "function": {
      if (tool.cache !== undefined && to.traits.cacheMarks !== "cache_control")
        to.lose("tools.cache_control", "dropped");
      return omitUndefined({
        type: "function",
        function: omitUndefined({
          name: name(tool.name),
          description: tool.description,
          parameters: tool.schema ?? { type: "object", properties: {} },
          strict: tool.strict,
        }),
        cache_control: to.traits.cacheMarks === "cache_control" ? tool.cache : undefined,
      });
    }
    case "custom":
      return to.traits.customTools === false
        ? wrapCustomTool(tool, to, name)
        : customOf(tool, name);
    case "hosted": {
      if (tool.origin === ID) return "type" in (asObject(tool.raw) ?? {}) ? tool.raw : undefined;
      if (/^(?:web_search|web_fetch|tool_search)/.test(tool.name)) return undefined;
      return rejectTool(tool);
    }
  }
}

function customOf(tool: Tool, name: (n: string) => string): JsonObject {
  const raw = asObject(tool.raw);
  const { type, ...grammar } = raw ?? {};
  const format = type === "grammar" && !("grammar" in grammar) ? { type, grammar } : raw;
  return {
    type: "custom",
    custom: omitUndefined({ name: name(tool.name), description: tool.description, format }),
  };
}

/**
 * Converts a freeform tool into a function with one string parameter. The codec of the client's
 * protocol extracts the string from the call.
 */
function wrapCustomTool(tool: Tool, to: ContentContext, name: (n: string) => string): JsonObject {
  to.lose("tools.custom", "approximated", "custom_tool_wrapped");
  const definition = asText(asObject(tool.raw)?.["definition"]);
  const description = [
    tool.description,
    definition === undefined ? undefined : `The input must follow this grammar:\n${definition}`,
  ].filter((s) => s !== undefined);
  return {
    type: "function",
    function: omitUndefined({
      name: name(tool.name),
      description: description.length > 0 ? description.join("\n\n") : undefined,
      parameters: {
        type: "object",
        properties: { input: { type: "string" } },
        required: ["input"],
        additionalProperties: false,
      },
    }),
  };
}

/**
 * Returns the web search options. In this protocol, web search is a field instead of a tool. If the
 * model does not support it, the client receives a warning that no search takes place.
 */
export function webSearchOptions(r: ChatRequest, to: ContentContext): JsonObject | undefined {
  const hosted = r.tools.filter((t) => t.type === "hosted" && t.origin !== ID);
  const search = hosted.find((t) => t.name.startsWith("web_search"));
  for (const tool of hosted)
    if (tool !== search || !to.traits.webSearch)
      to.lose(`tools.${tool.name}`, "dropped", "hosted_tool");
  if (!search || !to.traits.webSearch) return undefined;
  to.lose("tools.web_search", "approximated");
  const raw = asObject(search.raw) ?? {};
  const { type: _, ...place } = asObject(raw["user_location"]) ?? {};
  return omitUndefined({
    search_context_size: raw["search_context_size"],
    user_location:
      Object.keys(place).length > 0 ? { type: "approximate", approximate: place } : undefined,
  });
}

export function toWireToolChoice(
  r: ChatRequest,
  to: ContentContext,
  name: (n: string) => string,
): Json | undefined {
  const choice = r.toolChoice;
  if (choice === undefined || typeof choice === "string")
    return r.tools.length > 0 ? choice : undefined;
  const from = sourceOf<Json>(choice);
  if (from !== undefined && to.traits.customTools !== false) return from;
  const declared = indexByName(r.tools);
  const refer = (n: string): JsonObject => {
    const tool = declared.get(n);
    const custom = tool?.type === "custom" && to.traits.customTools !== false;
    return custom
      ? { type: "custom", custom: { name: name(n) } }
      : { type: "function", function: { name: name(n) } };
  };
  const tools = choice.names.map(refer);
  if (choice.must && tools.length === 1) return tools[0];
  return {
    type: "allowed_tools",
    allowed_tools: { mode: choice.must ? "required" : "auto", tools },
  };
}
