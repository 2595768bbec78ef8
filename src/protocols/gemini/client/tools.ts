// Encodes tool declarations and the tool choice.
import { declareTool, rejectTool } from "../../tool-declarations.ts";
import type { ChatRequest, Tool } from "../../../model/request.ts";
import type { Json, JsonObject } from "../../../model/values.ts";
import { toFunctionName, type GeminiEncoding } from "./encoding-context.ts";
import { toOpenApiSubset } from "./openapi-schema.ts";
import { asList, asObject, omitUndefined, asText } from "../../json-values.ts";
import { sourceOf, ID } from "../constants.ts";

/** Returns `tools`: all functions in one entry, and one entry for each hosted tool. */
export function toolsTo(r: ChatRequest, e: GeminiEncoding): Json[] | undefined {
  const declared = new Map<string, JsonObject>();
  for (const tool of r.tools) {
    if (tool.type === "hosted") continue;
    if (tool.cache !== undefined) e.of.reportLoss("cache_control", "dropped");
    const one = declaration(tool, e);
    declareTool(declared, String(one["name"]), one);
  }
  const hosted = r.tools.flatMap((tool) => (tool.type === "hosted" ? hostedTo(tool, e) : []));
  const out: Json[] = [];
  if (declared.size > 0) out.push({ functionDeclarations: [...declared.values()] });
  if (declared.size > 0 && hosted.length > 0 && !e.traits.combinesTools)
    e.of.reportLoss("tools.web_search", "dropped", "not_with_functions");
  else for (const tool of hosted) out.push(tool);
  return out.length > 0 ? out : undefined;
}

function declaration(tool: Tool, e: GeminiEncoding): JsonObject {
  const own = sourceOf<JsonObject>(tool);
  if (own) return own;
  if (tool.strict) e.of.reportLoss("tools.strict", "dropped");
  const name = toFunctionName(tool.name, e);
  if (tool.type === "custom") {
    e.of.reportLoss("tools.custom", "approximated", "custom_tool_wrapped");
    return { name, ...describeCustomTool(tool), ...parameters(WRAPPED, tool.name, e) };
  }
  const { description, schema } = tool;
  return {
    name,
    ...(description !== undefined && { description }),
    ...(schema && !isNothing(schema) && parameters(schema, tool.name, e)),
  };
}

const WRAPPED: JsonObject = {
  type: "object",
  properties: { input: { type: "string", description: "The input, as free text." } },
  required: ["input"],
};

/**
 * Whether a function takes no parameters. Its parameters are then omitted, because some models
 * reject an object without members.
 */
const isNothing = (schema: JsonObject): boolean =>
  Object.keys(asObject(schema["properties"]) ?? {}).length === 0 &&
  ["$ref", "allOf", "anyOf", "oneOf", "patternProperties"].every(
    (word) => schema[word] === undefined,
  ) &&
  typeof schema["additionalProperties"] !== "object";

function parameters(schema: JsonObject, name: string, e: GeminiEncoding): JsonObject {
  if (e.traits.jsonSchema) return { parametersJsonSchema: schema };
  const of = `tools.${name}`;
  const lose = () => e.of.reportLoss(of, "approximated", "schema_simplified");
  return { parameters: toOpenApiSubset(schema, of, e.expansionBudget, lose) };
}

/**
 * Returns a description with the grammar of a custom tool. The API cannot enforce a grammar, so the
 * grammar is only part of the description.
 */
function describeCustomTool(tool: Tool): JsonObject {
  const format = asObject(tool.raw) ?? {};
  const definition = asText((asObject(format["grammar"]) ?? format)["definition"]);
  const lines = [
    tool.description,
    definition === undefined ? undefined : `The input must follow this grammar:\n${definition}`,
  ].filter((words) => words !== undefined);
  return lines.length > 0 ? { description: lines.join("\n\n") } : {};
}

/** Encodes a hosted tool. Web search is the only hosted tool that every vendor has. */
function hostedTo(tool: Tool, e: GeminiEncoding): JsonObject[] {
  const raw = asObject(tool.raw) ?? {};
  if (tool.origin === ID) return [raw];
  if (!tool.name.startsWith("web_search")) return rejectTool(tool);
  e.of.reportLoss("tools.web_search", "approximated");
  return [{ googleSearch: {} }];
}

/** Returns `toolConfig`. Without tools, there is no choice to encode. */
export function choiceTo(
  r: ChatRequest,
  tools: readonly Json[] | undefined,
  e: GeminiEncoding,
): JsonObject | undefined {
  if (r.parallelToolCalls === false) e.of.reportLoss("parallel_tool_calls", "dropped");
  const functions = (tools ?? []).some((tool) => asObject(tool)?.["functionDeclarations"]);
  const hosted = (tools?.length ?? 0) > 1 || (tools?.length === 1 && !functions);
  return omitUndefined({
    functionCallingConfig: functions ? modeOf(r, e) : undefined,
    // Without this flag, functions combined with hosted tools are an error.
    includeServerSideToolInvocations: functions && hosted ? true : undefined,
  });
}

function modeOf({ toolChoice: choice }: ChatRequest, e: GeminiEncoding): JsonObject | undefined {
  if (choice === undefined) return undefined;
  if (typeof choice === "string")
    return { mode: choice === "required" ? "ANY" : choice === "none" ? "NONE" : "AUTO" };
  return {
    mode: choice.must ? "ANY" : "VALIDATED",
    allowedFunctionNames: asList(choice.names.map((name) => toFunctionName(name, e))),
  };
}
