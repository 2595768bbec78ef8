// Decodes tool declarations and the tool choice.
import type { ChatRequest, Json, JsonObject, Opt, Tool } from "../../../plugin/index.ts";
import { asBoolean, asList, asObject, omitUndefined, asText } from "../../json-values.ts";
import { rememberSource, ID } from "../constants.ts";
import { failMalformed } from "./content.ts";

export function toolsOf(fields: JsonObject): readonly Tool[] {
  const tools = asList(fields["tools"]).map((raw, i) =>
    rememberSource(toolOf(raw, `tools[${i}]`), raw),
  );
  if (tools.length === 0)
    asList(fields["functions"]).forEach((raw, i) => {
      const at = `functions[${i}]`;
      tools.push(functionOf(asObject(raw) ?? failMalformed(at, "must be an object"), at));
    });
  // Web search is a tool in other protocols and a field in this one.
  const search = asObject(fields["web_search_options"]);
  if (search) tools.push({ type: "hosted", name: "web_search", origin: ID, raw: search });
  return tools;
}

function toolOf(raw: Json, at: string): Tool {
  const tool = asObject(raw);
  const type = asText(tool?.["type"]);
  if (!tool || type === undefined) return failMalformed(at, "must be an object with a type");
  const fn = asObject(tool["function"]);
  if (fn)
    return omitUndefined({
      ...functionOf(fn, `${at}.function`),
      cache: tool["cache_control"] ?? undefined,
    });
  const custom = asObject(tool["custom"]);
  if (!custom) return { type: "hosted", name: asText(tool["name"]) ?? type, origin: ID, raw: tool };
  const format = asObject(custom["format"]);
  const grammar = asObject(format?.["grammar"]);
  return omitUndefined({
    type: "custom" as const,
    name: asText(custom["name"]) ?? failMalformed(`${at}.custom.name`, "must be a string"),
    description: asText(custom["description"]),
    // Other protocols put a grammar one level higher.
    raw: grammar ? { type: "grammar", ...grammar } : format,
  });
}

const functionOf = (fn: JsonObject, at: string): Tool =>
  omitUndefined({
    type: "function" as const,
    name: asText(fn["name"]) ?? failMalformed(`${at}.name`, "must be a string"),
    description: asText(fn["description"]),
    schema: asObject(fn["parameters"]),
    strict: asBoolean(fn["strict"]),
  });

/**
 * Decodes the tool choice. A choice that the common form cannot represent is returned in `kept` and
 * sent back unchanged.
 */
export function choiceOf(raw: Opt<Json>): { choice: ChatRequest["toolChoice"]; kept?: Json } {
  if (raw === undefined || raw === null) return { choice: undefined };
  if (raw === "auto" || raw === "none" || raw === "required") return { choice: raw };
  if (raw === "any") return { choice: "required" };
  const choice = asObject(raw);
  const allowed = asObject(choice?.["allowed_tools"]);
  if (allowed) {
    const names = asList(allowed["tools"]).flatMap((t) => named(asObject(t)) ?? []);
    return { choice: rememberSource({ names, must: allowed["mode"] === "required" }, raw) };
  }
  const name = named(choice);
  return name === undefined
    ? { choice: undefined, kept: raw }
    : { choice: { names: [name], must: true } };
}

const named = (of: JsonObject | undefined): string | undefined =>
  asText(asObject(of?.["function"])?.["name"]) ??
  asText(asObject(of?.["custom"])?.["name"]) ??
  asText(of?.["name"]);
