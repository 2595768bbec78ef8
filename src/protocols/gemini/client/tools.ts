// Tool declarations and the choice among them.
import { declareTool, refuseTool } from "../../tools.ts";
import type { ChatRequest, Tool } from "../../../model/request.ts";
import type { Json, JsonObject } from "../../../model/values.ts";
import { nameTo, type GeminiEncoding } from "./encoding.ts";
import { subset } from "./schema.ts";
import { list, object, present, text } from "../../json.ts";
import { cameFrom, ID } from "../words.ts";

/** `tools`: every function in one entry, each hosted tool in one of its own. */
export function toolsTo(r: ChatRequest, e: GeminiEncoding): Json[] | undefined {
  const declared = new Map<string, JsonObject>();
  for (const tool of r.tools) {
    if (tool.type === "hosted") continue;
    if (tool.cache !== undefined) e.of.lose("cache_control", "dropped");
    const one = declaration(tool, e);
    declareTool(declared, String(one["name"]), one);
  }
  const hosted = r.tools.flatMap((tool) => (tool.type === "hosted" ? hostedTo(tool, e) : []));
  const out: Json[] = [];
  if (declared.size > 0) out.push({ functionDeclarations: [...declared.values()] });
  if (declared.size > 0 && hosted.length > 0 && !e.with.together)
    e.of.lose("tools.web_search", "dropped", "not_with_functions");
  else for (const tool of hosted) out.push(tool);
  return out.length > 0 ? out : undefined;
}

function declaration(tool: Tool, e: GeminiEncoding): JsonObject {
  const own = cameFrom<JsonObject>(tool);
  if (own) return own;
  if (tool.strict) e.of.lose("tools.strict", "dropped");
  const name = nameTo(tool.name, e);
  if (tool.type === "custom") {
    e.of.lose("tools.custom", "approximated", "custom_tool_wrapped");
    return { name, ...described(tool), ...parameters(WRAPPED, tool.name, e) };
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

/** A function that takes nothing has no parameters: an object without members is an error to some models. */
const isNothing = (schema: JsonObject): boolean =>
  Object.keys(object(schema["properties"]) ?? {}).length === 0 &&
  ["$ref", "allOf", "anyOf", "oneOf", "patternProperties"].every(
    (word) => schema[word] === undefined,
  ) &&
  typeof schema["additionalProperties"] !== "object";

function parameters(schema: JsonObject, name: string, e: GeminiEncoding): JsonObject {
  if (e.with.jsonSchema) return { parametersJsonSchema: schema };
  const of = `tools.${name}`;
  const lose = () => e.of.lose(of, "approximated", "schema_simplified");
  return { parameters: subset(schema, of, e.purse, lose) };
}

/** A grammar cannot be enforced here, but it can be asked for. */
function described(tool: Tool): JsonObject {
  const format = object(tool.raw) ?? {};
  const definition = text((object(format["grammar"]) ?? format)["definition"]);
  const said = [
    tool.description,
    definition === undefined ? undefined : `The input must follow this grammar:\n${definition}`,
  ].filter((words) => words !== undefined);
  return said.length > 0 ? { description: said.join("\n\n") } : {};
}

/** Searching the web is the one hosted tool that every vendor has. */
function hostedTo(tool: Tool, e: GeminiEncoding): JsonObject[] {
  const raw = object(tool.raw) ?? {};
  if (tool.origin === ID) return [raw];
  if (!tool.name.startsWith("web_search")) return refuseTool(tool);
  e.of.lose("tools.web_search", "approximated");
  return [{ googleSearch: {} }];
}

/** `toolConfig`; without tools there is nothing to choose. */
export function choiceTo(
  r: ChatRequest,
  tools: readonly Json[] | undefined,
  e: GeminiEncoding,
): JsonObject | undefined {
  if (r.parallel === false) e.of.lose("parallel_tool_calls", "dropped");
  const functions = (tools ?? []).some((tool) => object(tool)?.["functionDeclarations"]);
  const hosted = (tools?.length ?? 0) > 1 || (tools?.length === 1 && !functions);
  return present({
    functionCallingConfig: functions ? modeOf(r, e) : undefined,
    // Without it, functions beside what Google runs itself are an error.
    includeServerSideToolInvocations: functions && hosted ? true : undefined,
  });
}

function modeOf({ toolChoice: choice }: ChatRequest, e: GeminiEncoding): JsonObject | undefined {
  if (choice === undefined) return undefined;
  if (typeof choice === "string")
    return { mode: choice === "required" ? "ANY" : choice === "none" ? "NONE" : "AUTO" };
  return {
    mode: choice.must ? "ANY" : "VALIDATED",
    allowedFunctionNames: list(choice.names.map((name) => nameTo(name, e))),
  };
}
