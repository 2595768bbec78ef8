// Tool declarations and the choice among them.
import type { ChatRequest, Json, JsonObject, Opt, Tool } from "../../../plugin/index.ts";
import { flag, list, object, present, text } from "../../json.ts";
import { came, ID } from "../words.ts";
import { malformed } from "./content.ts";

export function toolsOf(fields: JsonObject): readonly Tool[] {
  const tools = list(fields["tools"]).map((raw, i) => came(toolOf(raw, `tools[${i}]`), raw));
  if (tools.length === 0)
    list(fields["functions"]).forEach((raw, i) => {
      const at = `functions[${i}]`;
      tools.push(functionOf(object(raw) ?? malformed(at, "must be an object"), at));
    });
  // Searching is a tool like others elsewhere; here it has a field of its own.
  const search = object(fields["web_search_options"]);
  if (search) tools.push({ type: "hosted", name: "web_search", origin: ID, raw: search });
  return tools;
}

function toolOf(raw: Json, at: string): Tool {
  const tool = object(raw);
  const type = text(tool?.["type"]);
  if (!tool || type === undefined) return malformed(at, "must be an object with a type");
  const fn = object(tool["function"]);
  if (fn)
    return present({
      ...functionOf(fn, `${at}.function`),
      cache: tool["cache_control"] ?? undefined,
    });
  const custom = object(tool["custom"]);
  if (!custom) return { type: "hosted", name: text(tool["name"]) ?? type, origin: ID, raw: tool };
  const format = object(custom["format"]);
  const grammar = object(format?.["grammar"]);
  return present({
    type: "custom" as const,
    name: text(custom["name"]) ?? malformed(`${at}.custom.name`, "must be a string"),
    description: text(custom["description"]),
    // Others write a grammar one level higher.
    raw: grammar ? { type: "grammar", ...grammar } : format,
  });
}

const functionOf = (fn: JsonObject, at: string): Tool =>
  present({
    type: "function" as const,
    name: text(fn["name"]) ?? malformed(`${at}.name`, "must be a string"),
    description: text(fn["description"]),
    schema: object(fn["parameters"]),
    strict: flag(fn["strict"]),
  });

/** `kept`: what the common vocabulary has no word for; it goes back as it is. */
export function choiceOf(raw: Opt<Json>): { choice: ChatRequest["toolChoice"]; kept?: Json } {
  if (raw === undefined || raw === null) return { choice: undefined };
  if (raw === "auto" || raw === "none" || raw === "required") return { choice: raw };
  if (raw === "any") return { choice: "required" };
  const choice = object(raw);
  const allowed = object(choice?.["allowed_tools"]);
  if (allowed) {
    const names = list(allowed["tools"]).flatMap((t) => named(object(t)) ?? []);
    return { choice: came({ names, must: allowed["mode"] === "required" }, raw) };
  }
  const name = named(choice);
  return name === undefined
    ? { choice: undefined, kept: raw }
    : { choice: { names: [name], must: true } };
}

const named = (of: JsonObject | undefined): string | undefined =>
  text(object(of?.["function"])?.["name"]) ??
  text(object(of?.["custom"])?.["name"]) ??
  text(of?.["name"]);
