import { BOUNDS } from "../../../lib/bounds.ts";
import { failBoundExceeded } from "../../../model/bound-exceeded.ts";
import type { ChatRequest, Tool } from "../../../model/request.ts";
import type { Json, Opt } from "../../../model/values.ts";
import { isObject, asList, asObject, omitUndefined, asText } from "../../json-values.ts";
import { toSnakeCase } from "../../tool-names.ts";
import { rememberSource, ID, failMalformed } from "../constants.ts";
import { schemaOf } from "./json-schema.ts";

/** Every kind of hosted tool is a member by itself, and several may stand in one entry. */
export function toolsOf(tools: unknown): Tool[] {
  // The host has counted the entries: here one entry declares many.
  const all = asList(tools).flatMap((raw, i) => {
    const at = `tools[${i}]`;
    if (!isObject(raw)) return failMalformed(at, "must be a tool");
    return Object.keys(raw).flatMap((member): Tool[] => {
      const value = raw[member];
      if (value === undefined || value === null) return [];
      if (member !== "functionDeclarations") return [hosted(member, value)];
      return asList(value).map((one, k) => declared(one, `${at}.functionDeclarations[${k}]`));
    });
  });
  if (all.length > BOUNDS.tools.max) failBoundExceeded("tools", undefined, { param: "tools" });
  return all;
}

const SEARCHES: ReadonlySet<string> = new Set(["googleSearch", "googleSearchRetrieval"]);

const hosted = (member: string, value: Json): Tool => ({
  type: "hosted",
  // One name for the search that other protocols have too.
  name: SEARCHES.has(member) ? "web_search" : toSnakeCase(member),
  origin: ID,
  raw: { [member]: value },
});

function declared(raw: Json, at: string): Tool {
  const of = asObject(raw) ?? failMalformed(at, "must be a function's declaration");
  const schema = asObject(of["parametersJsonSchema"]) ?? asObject(of["parameters"]);
  return rememberSource(
    omitUndefined({
      type: "function" as const,
      name: asText(of["name"]) || failMalformed(`${at}.name`, "is required"),
      description: asText(of["description"]),
      // A function without parameters takes none, which other wires say by a schema.
      schema: schema ? schemaOf(schema) : { type: "object", properties: {} },
    }),
    of,
  );
}

/** `kept`: what the common vocabulary has no word for. */
export function choiceOf(config: Opt<Json>): {
  choice: ChatRequest["toolChoice"];
  kept?: Json;
} {
  const calling = asObject(asObject(config)?.["functionCallingConfig"]);
  const mode = asText(calling?.["mode"])?.toUpperCase();
  const names = asList(calling?.["allowedFunctionNames"]).flatMap((name) => asText(name) ?? []);
  if (!calling || mode === undefined || mode === "MODE_UNSPECIFIED") return { choice: undefined };
  if (names.length > 0 && (mode === "ANY" || mode === "VALIDATED"))
    return { choice: { names, must: mode === "ANY" } };
  switch (mode) {
    case "ANY":
      return { choice: "required" };
    case "NONE":
      return { choice: "none" };
    case "AUTO":
      return { choice: "auto" };
    // To other wires, a call that keeps to its schema is a call.
    default:
      return { choice: "auto", kept: calling };
  }
}
