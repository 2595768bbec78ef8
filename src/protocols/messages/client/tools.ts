import { declareTool, rejectTool } from "../../tool-declarations.ts";
import type { ChatRequest, Tool } from "../../../model/request.ts";
import type { Json, JsonObject } from "../../../model/values.ts";
import { cacheTo, nameTo, type MessagesEncoding } from "./blocks.ts";
import { isObject, omitUndefinedOrNothing as present } from "../../json-values.ts";
import { ID } from "../constants.ts";

export function toolsTo(r: ChatRequest, e: MessagesEncoding): Json[] | undefined {
  if (r.tools.length === 0) return undefined;
  const choice = typeof r.toolChoice === "object" ? r.toolChoice : undefined;
  // A single required tool can be named. A choice among several can only be expressed by omitting
  // the other tools.
  const some =
    choice && !(choice.names.length === 1 && choice.must) ? new Set(choice.names) : undefined;
  if (some) e.of.reportLoss("tool_choice", "approximated", "tools_filtered");
  const out = new Map<string, JsonObject>();
  for (const tool of r.tools) {
    if (some && !some.has(tool.name)) continue;
    const declared = toolTo(tool, e);
    declareTool(out, String(declared["name"] ?? declared["type"]), declared);
  }
  return [...out.values()];
}

const NOTHING = { type: "object", properties: {} };

function toolTo(tool: Tool, e: MessagesEncoding): JsonObject {
  const name = nameTo(tool.name);
  switch (tool.type) {
    case "hosted":
      return toHostedTool(tool, e);
    case "custom":
      e.of.reportLoss("tools.custom", "approximated", "custom_tool_wrapped");
      return {
        name,
        description: describeCustomTool(tool),
        input_schema: {
          type: "object",
          properties: { input: { type: "string", description: "The input, as free text." } },
          required: ["input"],
          additionalProperties: false,
        },
        ...cacheTo(tool.cache, e),
      };
    case "function": {
      const own = tool.origin === ID && isObject(tool.raw) ? tool.raw : {};
      const schema = tool.schema ?? NOTHING;
      if (tool.strict && !e.settings.strictTools) e.of.reportLoss("tools.strict", "dropped");
      return {
        ...own,
        name,
        ...(tool.description !== undefined && { description: tool.description }),
        input_schema: schema["type"] === undefined ? { type: "object", ...schema } : schema,
        ...(tool.strict && e.settings.strictTools && { strict: true }),
        ...cacheTo(tool.cache, e),
      };
    }
  }
}

/**
 * Returns the description of a custom tool. A grammar cannot be enforced here, so the description
 * requests it.
 */
function describeCustomTool(tool: Tool): string {
  const format = isObject(tool.raw) ? tool.raw : {};
  const { definition } = isObject(format["grammar"]) ? format["grammar"] : format;
  const description = tool.description ?? "";
  return typeof definition === "string"
    ? `${description}\n\nThe input must follow this grammar:\n${definition}`.trim()
    : description;
}

/** Encodes a hosted tool. Web search is the only one that every vendor has. */
function toHostedTool(tool: Tool, e: MessagesEncoding): JsonObject {
  if (tool.origin === ID && isObject(tool.raw)) return tool.raw;
  if (tool.name !== "web_search") return rejectTool(tool);
  e.of.reportLoss("tools.web_search", "approximated");
  const raw = isObject(tool.raw) ? tool.raw : {};
  const filters = isObject(raw["filters"]) ? raw["filters"] : {};
  const where = isObject(raw["user_location"]) ? raw["user_location"] : undefined;
  const place = where && (isObject(where["approximate"]) ? where["approximate"] : where);
  const { type: _type, ...at } = place ?? {};
  return {
    type: "web_search_20250305",
    name: "web_search",
    ...(Array.isArray(filters["allowed_domains"]) && {
      allowed_domains: filters["allowed_domains"],
    }),
    ...(present(at) && { user_location: { type: "approximate", ...at } }),
  };
}

export function choiceTo(r: ChatRequest): JsonObject | undefined {
  const { toolChoice: choice, parallelToolCalls } = r;
  if (choice === undefined && parallelToolCalls !== false) return undefined;
  // Without tools there is no choice, and this protocol rejects `tool_choice`.
  if (r.tools.length === 0 && choice !== "none") return undefined;
  const off =
    parallelToolCalls === undefined || choice === "none"
      ? {}
      : { disable_parallel_tool_use: !parallelToolCalls };
  if (choice === "none") return { type: "none" };
  if (choice === "required") return { type: "any", ...off };
  if (choice === undefined || choice === "auto") return { type: "auto", ...off };
  if (choice.names.length === 1 && choice.must)
    return { type: "tool", name: nameTo(choice.names[0]!), ...off };
  return { type: choice.must ? "any" : "auto", ...off };
}
