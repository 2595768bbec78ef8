// Names of tools. Elsewhere a tool has one flat name and is a function; here it may stand in a namespace or take free
// text. What the client declared says how a call must look when it comes back.
import type { Body, Json, JsonObject } from "../../plugin/index.ts";
import { createNameRestorer } from "../tool-names.ts";
import { asList, asObject, asText } from "../json-values.ts";

/** How long a name may be here. */
export const MAX_TOOL_NAME = 64;

export const flatName = (namespace: string | undefined, name: string): string =>
  namespace === undefined ? name : `${namespace}__${name}`;

/** A tool as the client declared it. */
export interface ToolName {
  name: string;
  namespace: string | undefined;
  custom: boolean;
}

/** Tools that items bring along: the model may call them as if they had been declared. */
export function toolsInItems(input: unknown): readonly Json[] {
  const found: Json[] = [];
  for (const raw of asList(input)) {
    const item = asObject(raw);
    if (item?.["type"] === "tool_search_output" || item?.["type"] === "additional_tools")
      for (const tool of asList(item["tools"])) found.push(tool);
  }
  return found;
}

/** What the client declared, by the flat name that every other protocol knows it by. */
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

/** Calls as the client knows them: a name that had to be fitted for an upstream is the declared one again. */
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
