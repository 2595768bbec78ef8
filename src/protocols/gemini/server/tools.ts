import { BOUNDS } from "../../../lib/bounds.ts";
import { exceed } from "../../../model/excess.ts";
import type { ChatRequest, Tool } from "../../../model/request.ts";
import type { Json, Opt } from "../../../model/values.ts";
import { isObject, list, object, present, text } from "../../json.ts";
import { snake } from "../../names.ts";
import { came, ID, malformed } from "../words.ts";
import { schemaOf } from "./schema.ts";

/** Every kind of hosted tool is a member by itself, and several may stand in one entry. */
export function toolsOf(tools: unknown): Tool[] {
  // The host has counted the entries: here one entry declares many.
  const all = list(tools).flatMap((raw, i) => {
    const at = `tools[${i}]`;
    if (!isObject(raw)) return malformed(at, "must be a tool");
    return Object.keys(raw).flatMap((member): Tool[] => {
      const value = raw[member];
      if (value === undefined || value === null) return [];
      if (member !== "functionDeclarations") return [hosted(member, value)];
      return list(value).map((one, k) => declared(one, `${at}.functionDeclarations[${k}]`));
    });
  });
  if (all.length > BOUNDS.tools.most) exceed("tools", undefined, { param: "tools" });
  return all;
}

const SEARCHES: ReadonlySet<string> = new Set(["googleSearch", "googleSearchRetrieval"]);

const hosted = (member: string, value: Json): Tool => ({
  type: "hosted",
  // One name for the search that other protocols have too.
  name: SEARCHES.has(member) ? "web_search" : snake(member),
  origin: ID,
  raw: { [member]: value },
});

function declared(raw: Json, at: string): Tool {
  const of = object(raw) ?? malformed(at, "must be a function's declaration");
  const schema = object(of["parametersJsonSchema"]) ?? object(of["parameters"]);
  return came(
    present({
      type: "function" as const,
      name: text(of["name"]) || malformed(`${at}.name`, "is required"),
      description: text(of["description"]),
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
  const calling = object(object(config)?.["functionCallingConfig"]);
  const mode = text(calling?.["mode"])?.toUpperCase();
  const names = list(calling?.["allowedFunctionNames"]).flatMap((name) => text(name) ?? []);
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
