// Rejects tools that a protocol cannot declare: tools of another protocol and different tools with
// the same name. The error names the tool and the reason.
import { fail } from "../model/error.ts";
import type { Tool } from "../model/request.ts";
import type { JsonObject } from "../model/values.ts";
import { asText, asObject } from "./json-values.ts";
import { isTypedClientTool } from "./references/hosted-tools.ts";

/**
 * Throws an error for a tool that cannot be declared. The tool's type determines where it runs. A
 * tool that the client runs only lacks a schema, so the message suggests to declare it as a
 * function.
 */
export function rejectTool(tool: Tool): never {
  const type = asText(asObject(tool.raw)?.["type"]) ?? tool.name;
  const name = type === tool.name ? tool.name : `${tool.name} (${type})`;
  return fail(
    "unsupported",
    isTypedClientTool(type)
      ? `The tool ${name} is specific to another protocol. Declare it as a function with a schema of its input.`
      : `The tool ${name} can be used only with the provider that hosts or defines it.`,
    { param: "tools", code: "unsupported_tool" },
  );
}

/**
 * Adds a tool under the name that the provider will receive. A repeated identical tool is ignored.
 * Throws if two different tools have the same name.
 */
export function declareTool(
  declared: Map<string, JsonObject>,
  name: string,
  tool: JsonObject,
): void {
  const before = declared.get(name);
  if (before && JSON.stringify(before) !== JSON.stringify(tool))
    fail("unsupported", `Two tools are named ${name}. Give each tool its own name.`, {
      param: "tools",
      code: "duplicate_tool",
    });
  declared.set(name, tool);
}
