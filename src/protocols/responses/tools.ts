// Encodes and decodes tool declarations and the tool choice.
import { fail } from "../../model/error.ts";
import type {
  ChatRequest,
  Json,
  JsonObject,
  LossReporter,
  Opt,
  Tool,
  Body,
} from "../../plugin/index.ts";
import { asBoolean, asList, asObject, omitUndefined, asText } from "../json-values.ts";
import { ORIGIN, rememberSource, sourceOf } from "./constants.ts";
import { indexByName, fitName, createNameRestorer } from "../tool-calls.ts";
import { rejectTool } from "../tool-declarations.ts";

/** The original declaration of a tool, with facts that the common form cannot express. */
interface Declaration {
  original: JsonObject;
  namespace?: JsonObject;
  /** Whether the tool comes from an input item, which is sent again anyway. */
  isFromItem?: true;
}

/**
 * Decodes tools. `bound` contains tools that have no meaning at another vendor, by the name under
 * which their loss is reported. An example is a web search without access to the open web, because
 * the searches of all other providers use the open web.
 */
export function toolsOf(body: JsonObject): {
  tools: readonly Tool[];
  bound: Record<string, Json>;
} {
  const tools: Tool[] = [];
  const bound: Record<string, Json> = {};
  const add = (raw: Json, more: Omit<Declaration, "original">, at: string) => {
    const as = asObject(raw);
    const type = asText(as?.["type"]);
    if (!as || type === undefined)
      return fail("invalid", `${at} must be an object with a type.`, {
        param: at,
        code: "invalid_type",
      });
    if (type === "namespace") {
      asList(as["tools"]).forEach((inner, i) =>
        add(inner, { ...more, namespace: as }, `${at}.tools[${i}]`),
      );
      return;
    }
    if (VENDOR_BOUND_TOOLS.has(type) || as["external_web_access"] === false) {
      if (!more.isFromItem) bound[`tools.${type}`] = as;
      return;
    }
    tools.push(rememberSource(toolOf(as, type, more.namespace, at), { original: as, ...more }));
  };
  asList(body["tools"]).forEach((raw, i) => add(raw, {}, `tools[${i}]`));
  const declared = new Set(tools.map((t) => t.name));
  const own = tools.length;
  for (const raw of toolsInItems(body["input"])) add(raw, { isFromItem: true }, "tools");
  return { tools: tools.filter((t, i) => i < own || !declared.has(t.name)), bound };
}

const VENDOR_BOUND_TOOLS = new Set(["tool_search", "programmatic_tool_calling"]);

function toolOf(as: JsonObject, type: string, namespace: Opt<JsonObject>, at: string): Tool {
  const own = asText(as["name"]);
  if (type !== "function" && type !== "custom") {
    // All versions of web search get one name, because other protocols have this tool too.
    const name = type.startsWith("web_search") ? "web_search" : (own ?? type);
    return { type: "hosted", name, origin: ORIGIN, raw: as };
  }
  if (own === undefined)
    return fail("invalid", `${at}.name must be a string.`, {
      param: `${at}.name`,
      code: "invalid_type",
    });
  const name = flatName(asText(namespace?.["name"]), own);
  const description = toolDescription(as, namespace);
  if (type === "custom")
    return omitUndefined({ type, name, description, raw: as["format"] ?? undefined } as const);
  const schema = asObject(as["parameters"]);
  return omitUndefined({
    type,
    name,
    description,
    schema,
    strict: asBoolean(as["strict"]),
  } as const);
}

/**
 * Returns a tool's description. In a flat list, the first tool of a namespace also carries the
 * description of the namespace.
 */
function toolDescription(as: JsonObject, namespace: Opt<JsonObject>): string | undefined {
  const own = asText(as["description"]);
  const common =
    asList(namespace?.["tools"])[0] === as ? asText(namespace?.["description"]) : undefined;
  return common === undefined || own === undefined ? (own ?? common) : `${common}\n\n${own}`;
}

/**
 * Encodes tools. `own` contains the fields that only this protocol has. It is set only if the
 * client sent the request in this protocol. Then unset members stay unset, because the protocol's
 * defaults apply.
 */
export function toolsTo(
  request: ChatRequest,
  of: LossReporter,
  own: JsonObject | undefined,
): Json[] {
  const out: Json[] = Object.entries(own ?? {}).flatMap(([field, tool]) =>
    field.startsWith("tools.") ? [tool!] : [],
  );
  let group: { of: JsonObject; tools: Json[] } | undefined;
  for (const tool of request.tools) {
    const from = sourceOf<Declaration>(tool);
    if (from?.isFromItem) continue;
    const as = from?.original ?? toolTo(tool, of, own !== undefined);
    if (as === undefined) continue;
    if (!from?.namespace) {
      group = undefined;
      out.push(as);
    } else if (group?.of === from.namespace) group.tools.push(as);
    else {
      group = { of: from.namespace, tools: [as] };
      out.push({ ...from.namespace, tools: group.tools });
    }
  }
  return out;
}

function toolTo(tool: Tool, of: LossReporter, native: boolean): JsonObject | undefined {
  if (tool.cache !== undefined) of.reportLoss("tools.cache_control", "dropped");
  if (tool.type === "hosted") return hostedTo(tool, of);
  const { type, description } = tool;
  const name = fitName(tool.name, MAX_TOOL_NAME);
  if (type === "custom")
    return omitUndefined({ type, name, description, format: formatOf(tool.raw) });
  return omitUndefined({
    type,
    name,
    description,
    parameters: tool.schema ?? { type: "object", properties: {} },
    // The default of `strict` is true in this protocol and false in others.
    strict: tool.strict ?? (native ? undefined : false),
  });
}

/** Returns the format of a custom tool. Chat completions nests a grammar one level deeper. */
function formatOf(raw: Opt<Json>): JsonObject | undefined {
  const format = asObject(asObject(raw)?.["format"] ?? raw);
  const grammar = asObject(format?.["grammar"]);
  return grammar ? { type: "grammar", ...grammar } : format;
}

/** Encodes a hosted tool. Web search is the only one that several vendors host in a similar way. */
function hostedTo(tool: Tool, of: LossReporter): JsonObject | undefined {
  const raw = asObject(tool.raw) ?? {};
  if (tool.origin === ORIGIN) return raw;
  if (!tool.name.startsWith("web_search")) return rejectTool(tool);
  for (const lost of ["max_uses", "blocked_domains"])
    if (raw[lost] !== undefined) of.reportLoss(`tools.web_search.${lost}`, "dropped");
  const place = asObject(raw["user_location"]);
  const domains = raw["allowed_domains"] ?? undefined;
  return omitUndefined({
    type: "web_search",
    search_context_size: raw["search_context_size"],
    user_location: place && { type: "approximate", ...(asObject(place["approximate"]) ?? place) },
    filters: domains === undefined ? undefined : { allowed_domains: domains },
  });
}

export type Choice = ChatRequest["toolChoice"];

/**
 * Decodes the tool choice. `kept` is a choice that the common form cannot express, and it is sent
 * back unchanged.
 */
export function choiceOf(raw: Opt<Json>): { choice: Choice; kept?: Json } {
  if (raw === undefined || raw === null) return { choice: undefined };
  if (raw === "auto" || raw === "none" || raw === "required") return { choice: raw };
  const c = asObject(raw);
  const type = asText(c?.["type"]);
  if (!c || type === undefined)
    return fail("invalid", "tool_choice must be auto, none, required or an object with a type.", {
      param: "tool_choice",
      code: "invalid_type",
    });
  if (type === "allowed_tools") {
    const names = asList(c["tools"]).flatMap((t) => named(asObject(t)) ?? []);
    return { choice: rememberSource({ names, must: c["mode"] === "required" }, raw) };
  }
  if (type === "mcp") return { choice: undefined, kept: raw };
  const name = named(c);
  return name === undefined
    ? fail("invalid", "Missing tool_choice.name.", { param: "tool_choice.name" })
    : { choice: rememberSource({ names: [name], must: true }, raw) };
}

function named(c: JsonObject | undefined): string | undefined {
  const type = asText(c?.["type"]);
  const name = asText(c?.["name"]) ?? (type === "mcp" ? asText(c?.["server_label"]) : undefined);
  if (name !== undefined) return flatName(asText(c?.["namespace"]), name);
  if (type?.startsWith("web_search")) return "web_search";
  return type === "function" || type === "custom" ? undefined : type;
}

export function choiceTo(request: ChatRequest): Json | undefined {
  const choice = request.toolChoice;
  if (typeof choice !== "object") return choice;
  const own = sourceOf<Json>(choice);
  if (own !== undefined) return own;
  const spoken = createCallNamer(request.tools);
  const declared = indexByName(request.tools);
  const refer = (name: string): JsonObject => {
    const tool = declared.get(name);
    if (tool?.type === "hosted") return { type: asText(asObject(tool.raw)?.["type"]) ?? tool.name };
    return { type: tool?.type === "custom" ? "custom" : "function", ...spoken(name) };
  };
  const tools = choice.names.map(refer);
  return choice.must && tools.length === 1
    ? tools[0]
    : { type: "allowed_tools", mode: choice.must ? "required" : "auto", tools };
}

export interface NamedCall extends JsonObject {
  readonly name: string;
  readonly namespace?: string;
}

/**
 * Returns a function that maps a flat tool name to this protocol's form: within its declared
 * namespace, or shortened to the maximum length.
 */
export function createCallNamer(tools: readonly Tool[]): (name: string) => NamedCall {
  const known = new Map<string, NamedCall>();
  for (const tool of tools) {
    const from = sourceOf<Declaration>(tool);
    const name = asText(from?.original["name"]);
    const namespace = asText(from?.namespace?.["name"]);
    if (name !== undefined && namespace !== undefined) known.set(tool.name, { name, namespace });
  }
  return (name) => known.get(name) ?? { name: fitName(name, MAX_TOOL_NAME) };
}

// Names of tools. In other protocols a tool has one flat name and is a function. In this protocol,
// it can be in a namespace or take free text. The client's declaration determines the form of a
// returned call.

/** Maximum length of a tool name, in characters. */
const MAX_TOOL_NAME = 64;

export const flatName = (namespace: string | undefined, name: string): string =>
  namespace === undefined ? name : `${namespace}__${name}`;

/** The name of a tool as the client declared it. */
export interface ToolName {
  name: string;
  namespace: string | undefined;
  custom: boolean;
}

/** Returns the tools inside input items. The model can call them as if they had been declared. */
function toolsInItems(input: unknown): readonly Json[] {
  const found: Json[] = [];
  for (const raw of asList(input)) {
    const item = asObject(raw);
    if (item?.["type"] === "tool_search_output" || item?.["type"] === "additional_tools")
      for (const tool of asList(item["tools"])) found.push(tool);
  }
  return found;
}

/** Returns the tools that the client declared, by the flat name that other protocols use. */
function declaredTools(body: Body): ReadonlyMap<string, ToolName> {
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
