import { BOUNDS } from "../../../lib/bounds.ts";
import { failBoundExceeded } from "../../../model/bound-exceeded.ts";
import type { ChatRequest, Tool } from "../../../model/request.ts";
import type { Json, Opt } from "../../../model/values.ts";
import { isObject, asList, asObject, omitUndefined, asText } from "../../json-values.ts";
import { toSnakeCase } from "../../tool-calls.ts";
import { rememberSource, ID, failMalformed } from "../constants.ts";
import { schemaOf } from "./json-schema.ts";

/** Decodes tools. Each type of hosted tool is its own member, and one entry can contain several. */
export function toolsOf(tools: unknown): Tool[] {
  // The host limits the number of entries. In this protocol, one entry can declare many tools, so
  // the limit is checked again.
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
  // Web search has one name in all protocols.
  name: SEARCHES.has(member) ? "web_search" : toSnakeCase(member),
  origin: ID,
  raw: { [member]: value },
});

function declared(raw: Json, at: string): Tool {
  const of = asObject(raw) ?? failMalformed(at, "must be a function declaration");
  const schema = asObject(of["parametersJsonSchema"]) ?? asObject(of["parameters"]);
  return rememberSource(
    omitUndefined({
      type: "function" as const,
      name: asText(of["name"]) || failMalformed(`${at}.name`, "is required"),
      description: asText(of["description"]),
      // A function without `parameters` takes none. Other protocols express this with an empty
      // schema.
      schema: schema ? schemaOf(schema) : { type: "object", properties: {} },
    }),
    of,
  );
}

/** Decodes the tool choice. A mode that the common form cannot represent is returned in `kept`. */
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
    // `VALIDATED` requires that calls match their schema. Other protocols have no such mode, so it
    // becomes `auto`.
    default:
      return { choice: "auto", kept: calling };
  }
}
