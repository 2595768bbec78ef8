// Encodes tools and the tool choice.
import type { CallContext, ChatRequest, Json, JsonObject, Tool } from "tollgate/plugin";
import { declareTool, rejectTool } from "tollgate/protocols/codec";
import { some } from "../json.ts";
import { cacheTo, nameTo } from "./blocks.ts";

const NOTHING: JsonObject = { type: "object", properties: {} };

export function toolConfigTo(r: ChatRequest, of: CallContext): JsonObject | undefined {
  const called = calledIn(r);
  const none = r.toolChoice === "none";
  // Converse rejects a conversation that contains tool calls but does not declare the called tools.
  const declared = none && called.size === 0 ? [] : toolsTo(r, of);
  if (none && declared.length > 0) of.reportLoss("tool_choice", "approximated", "tool_choice_none");
  if (r.parallelToolCalls === false && declared.length > 0)
    of.reportLoss("parallel_tool_calls", "dropped");
  if (declared.length > 0)
    return some({ tools: declared, toolChoice: none ? undefined : choiceTo(r) });
  if (called.size === 0) return undefined;
  of.reportLoss("tools", "approximated", "tools_from_history");
  return {
    tools: [...called].map((name) => ({ toolSpec: { name, inputSchema: { json: NOTHING } } })),
  };
}

const calledIn = ({ turns }: ChatRequest): Set<string> =>
  new Set(
    turns.flatMap(({ blocks }) =>
      blocks.flatMap((block) => (block.type === "call" ? [nameTo(block.name)] : [])),
    ),
  );

function toolsTo(r: ChatRequest, of: CallContext): Json[] {
  const choice = typeof r.toolChoice === "object" ? r.toolChoice : undefined;
  // A single required tool can be named. A choice among several is possible only by omitting the
  // others.
  const among =
    choice && !(choice.must && choice.names.length === 1) ? new Set(choice.names) : undefined;
  if (among) of.reportLoss("tool_choice", "approximated", "tools_filtered");
  const declared = new Map<string, JsonObject>();
  const marked: Json[] = [];
  for (const tool of r.tools) {
    if (among && !among.has(tool.name)) continue;
    const spec = specOf(tool, of);
    const before = declared.size;
    declareTool(declared, String(spec["name"]), spec);
    if (declared.size > before) marked.push({ toolSpec: spec }, ...cacheTo(tool, of));
  }
  return marked;
}

function specOf(tool: Tool, of: CallContext): JsonObject {
  if (tool.type === "hosted") return rejectTool(tool);
  const name = nameTo(tool.name);
  const description = tool.description ? { description: tool.description } : {};
  if (tool.type === "custom") {
    of.reportLoss("tools.custom", "approximated", "custom_tool_wrapped");
    const input = { type: "string", description: "The input, as free text." };
    const json = { type: "object", properties: { input }, required: ["input"] };
    return { name, ...description, inputSchema: { json } };
  }
  const schema = tool.schema ?? NOTHING;
  return {
    name,
    ...description,
    inputSchema: { json: schema["type"] === undefined ? { type: "object", ...schema } : schema },
    ...(tool.strict && { strict: true }),
  };
}

function choiceTo({ toolChoice: choice }: ChatRequest): JsonObject | undefined {
  if (choice === undefined || choice === "none") return undefined;
  if (choice === "auto") return { auto: {} };
  if (choice === "required") return { any: {} };
  if (choice.must && choice.names.length === 1) return { tool: { name: nameTo(choice.names[0]!) } };
  return choice.must ? { any: {} } : { auto: {} };
}
