// Tools that a wire cannot declare: another protocol's own, and two of one name. Each is refused by its name, with the reason.
import { fail } from "../model/error.ts";
import type { Tool } from "../model/request.ts";
import type { JsonObject } from "../model/values.ts";
import { asObject, asText } from "./json-values.ts";
import { isTypedClientTool } from "./references/index.ts";

/** Its type tells where it runs: what the client runs itself lacks only a description of what it takes. */
export function rejectTool(tool: Tool): never {
  const type = asText(asObject(tool.raw)?.["type"]) ?? tool.name;
  const name = type === tool.name ? tool.name : `${tool.name} (${type})`;
  return fail(
    "unsupported",
    isTypedClientTool(type)
      ? `The tool ${name} is described by its own protocol alone. Declare it as a function, with a schema of what it takes.`
      : `The tool ${name} runs at its own provider, or is known to it alone.`,
    { param: "tools", code: "unsupported_tool" },
  );
}

/** Tools by the names that the wire will see. The same tool twice is one; two that differ under one name are refused. */
export function declareTool(
  declared: Map<string, JsonObject>,
  name: string,
  tool: JsonObject,
): void {
  const before = declared.get(name);
  if (before && JSON.stringify(before) !== JSON.stringify(tool))
    fail("unsupported", `Two tools are named ${name}. Give each its own name.`, {
      param: "tools",
      code: "duplicate_tool",
    });
  declared.set(name, tool);
}
