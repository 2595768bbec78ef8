// Names of tools. In other protocols a tool has one flat name and is a function. In this one it can
// be in a namespace or take free text. The client's declaration determines the form of a returned
// call.
import type { Body, Json, JsonObject } from "../../plugin/index.ts";
import { createNameRestorer } from "../tool-names.ts";
import { asList, asObject, asText } from "../json-values.ts";

/** Maximum length of a tool name, in characters. */
export const MAX_TOOL_NAME = 64;

export const flatName = (namespace: string | undefined, name: string): string =>
  namespace === undefined ? name : `${namespace}__${name}`;

/** The name of a tool as the client declared it. */
export interface ToolName {
  name: string;
  namespace: string | undefined;
  custom: boolean;
}

/** Returns the tools inside input items. The model can call them as if they had been declared. */
export function toolsInItems(input: unknown): readonly Json[] {
  const found: Json[] = [];
  for (const raw of asList(input)) {
    const item = asObject(raw);
    if (item?.["type"] === "tool_search_output" || item?.["type"] === "additional_tools")
      for (const tool of asList(item["tools"])) found.push(tool);
  }
  return found;
}

/** Returns the tools that the client declared, by the flat name that other protocols use. */
export function declaredTools(body: Body): ReadonlyMap<string, ToolName> {
  const found = new Map<string, ToolName>();
  const add = (tool: JsonObject, namespace: string | undefined) => {
    const name = asText(tool["name"]);
    const custom = tool["type"] === "custom";
    if (name !== undefined && (custom || tool["type"] === "function"))
      found.set(flatName(namespace, name), { name, namespace, custom });
  };
  for (const raw of [...asList(body["tools"]), ...toolsInItems(body["input"])]) {
    const tool = asObject(raw);
    if (tool?.["type"] === "namespace")
      for (const inner of asList(tool["tools"])) {
        const one = asObject(inner);
        if (one) add(one, asText(tool["name"]));
      }
    else if (tool) add(tool, undefined);
  }
  return found;
}

/**
 * Returns a function that maps a call's name back to the declared tool, if the name was shortened
 * or changed for a provider.
 */
export function createToolNameRestorer(body: Body): (name: string) => ToolName {
  let declared: ReadonlyMap<string, ToolName> | undefined;
  const unfitted = createNameRestorer(() => declared!.keys());
  return (name) => {
    declared ??= declaredTools(body);
    return (
      declared.get(name) ??
      declared.get(unfitted(name)) ?? {
        name,
        namespace: undefined,
        custom: false,
      }
    );
  };
}
