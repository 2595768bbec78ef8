import type { ChatRequest, Output, Reasoning, Tool } from "../../../model/request.ts";
import type { Body, Json, JsonObject, Opt, Field } from "../../../model/values.ts";
import type { ConversationKey } from "../../../plugin/references.ts";
import {
  KNOWN_INSIDE,
  ADDRESS_FIELDS,
  rememberSource,
  ID,
  PASSED_THROUGH_FIELDS,
  failMalformed,
  snakeCaseNames,
} from "../constants.ts";
import { normalizeBody, TOP_LEVEL_FIELDS } from "../normalize-field-names.ts";
import { instructionsOf, turnsOf } from "./contents.ts";
import {
  asBoolean,
  asList,
  asNumber,
  asObject,
  omitUndefined,
  omitUndefinedOrNothing,
  asText,
  isObject,
} from "../../json-values.ts";
import { findUnknownFields, unknownTopLevelFields } from "../../unknown-fields.ts";
import { BOUNDS } from "../../../lib/bounds.ts";
import { failBoundExceeded } from "../../../model/bound-exceeded.ts";
import { toSnakeCase } from "../../tool-calls.ts";
import { setOwnProperty } from "../../../lib/set-own-property.ts";

const KNOWN: ReadonlySet<string> = new Set([...TOP_LEVEL_FIELDS, ...ADDRESS_FIELDS]);

/**
 * Decodes a request body. Fields that only this protocol has are stored in `ext.gemini`. Fields
 * that no codec handles are stored in `rest`.
 */
export function decodeRequest(body: Body): ChatRequest {
  const fields = unwrapCountRequest(normalizeBody(body) as JsonObject);
  const config = asObject(fields["generationConfig"]) ?? {};
  const { choice, kept } = choiceOf(fields["toolConfig"]);
  const format = formatOf(config);
  const own: Record<string, Json | undefined> = { ...findUnknownFields(fields, KNOWN_INSIDE) };
  for (const field of PASSED_THROUGH_FIELDS) own[field] = fields[field] ?? undefined;
  if (kept !== undefined) own["toolConfig.functionCallingConfig"] = kept;
  if (format.kept !== undefined) own["generationConfig.responseMimeType"] = format.kept;
  return omitUndefined({
    operation: "chat" as const,
    model: asText(fields["model"]) ?? "",
    stream: fields["stream"] === true,
    instructions: instructionsOf(fields["systemInstruction"]),
    turns: turnsOf(fields["contents"]),
    tools: toolsOf(fields["tools"]),
    toolChoice: choice,
    output: omitUndefined({
      maxTokens: asNumber(config["maxOutputTokens"]),
      stop: stopOf(config["stopSequences"]),
      modalities: modalitiesOf(config["responseModalities"]),
      format: format.format,
    }),
    sampling: omitUndefined({
      temperature: asNumber(config["temperature"]),
      topP: asNumber(config["topP"]),
      topK: asNumber(config["topK"]),
      presence: asNumber(config["presencePenalty"]),
      frequency: asNumber(config["frequencyPenalty"]),
      seed: asNumber(config["seed"]),
      n: asNumber(config["candidateCount"]),
      logprobs:
        config["responseLogprobs"] === true ? (asNumber(config["logprobs"]) ?? 0) : undefined,
    }),
    reasoning: reasoningOf(asObject(config["thinkingConfig"])),
    tier: tierOf(fields["serviceTier"]),
    state: omitUndefined({ store: asBoolean(fields["store"]) }),
    rest: unknownTopLevelFields(fields, (field) => KNOWN.has(field)),
    // Always set, even if empty, because it marks the protocol of the request.
    ext: { [ID]: omitUndefinedOrNothing(own) ?? {} },
  });
}

/** Returns the request to count, which may be inside its own field. */
function unwrapCountRequest(fields: JsonObject): JsonObject {
  const inner = asObject(fields["generateContentRequest"]);
  if (!inner || fields["contents"] !== undefined) return fields;
  return { ...fields, generateContentRequest: undefined, ...inner, model: fields["model"] };
}

function stopOf(raw: Opt<Json>): readonly string[] | undefined {
  const stop = asList(raw).flatMap((one) => asText(one) || []);
  return stop.length > 0 ? stop : undefined;
}

function modalitiesOf(raw: Opt<Json>): readonly string[] | undefined {
  const all = asList(raw).flatMap((one) => asText(one)?.toLowerCase() ?? []);
  return all.length > 0 ? all : undefined;
}

/**
 * Decodes the response format. A MIME type that the common form cannot represent is returned in
 * `kept`.
 */
function formatOf(config: JsonObject): { format: Output["format"]; kept?: Json } {
  const mime = asText(config["responseMimeType"]);
  const schema = asObject(config["responseJsonSchema"]) ?? asObject(config["responseSchema"]);
  if (mime === "application/json")
    return {
      format: rememberSource<NonNullable<Output["format"]>>(
        schema ? { type: "schema", schema: schemaOf(schema) } : { type: "json" },
        omitMembers(config, ["responseMimeType", "responseSchema", "responseJsonSchema"]),
      ),
    };
  return { format: undefined, ...(mime !== undefined && mime !== "text/plain" && { kept: mime }) };
}

/**
 * Decodes the reasoning settings. `auto` is the model's default behavior. Whether the reasoning
 * text is sent is a separate setting.
 */
function reasoningOf(config: JsonObject | undefined): Reasoning {
  if (!config) return { mode: "auto" };
  const level = asText(config["thinkingLevel"])?.toLowerCase();
  const budget = asNumber(config["thinkingBudget"]);
  const show = config["includeThoughts"] === true ? {} : ({ show: "none" } as const);
  const meant: Reasoning =
    level !== undefined && level !== "thinking_level_unspecified"
      ? { mode: "effort", effort: level, ...show }
      : budget === 0
        ? { mode: "off" }
        : budget !== undefined && budget > 0
          ? { mode: "budget", budget, ...show }
          : config["includeThoughts"] === true
            ? { mode: "auto", show: "summary" }
            : { mode: "auto" };
  return rememberSource(
    meant,
    omitMembers(config, ["includeThoughts", "thinkingBudget", "thinkingLevel"]),
  );
}

const omitMembers = (of: JsonObject, names: readonly string[]): JsonObject =>
  omitUndefined(Object.fromEntries(names.map((name) => [name, of[name]])));

/**
 * Decodes the service tier. `standard` is the default tier and becomes `default`, the name that
 * other protocols use.
 */
function tierOf(raw: Opt<Json>): string | undefined {
  const tier = asText(raw)
    ?.toLowerCase()
    .replace(/^service_tier_/, "");
  return tier === "standard" ? "default" : tier === "unspecified" ? undefined : tier;
}

/**
 * Returns the key that identifies a conversation: its instructions, its tools, and its first turn,
 * which is the user's. Either spelling is accepted.
 */
export function conversationKey(body: Body): ConversationKey {
  const [first] = asList(body["contents"]);
  return {
    prefix: [
      parts(body["systemInstruction"] ?? body["system_instruction"]),
      body["tools"],
      isObject(first) ? parts(first) : undefined,
    ],
  };
}

const parts = (content: Opt<Field>): Opt<Field> =>
  isObject(content) ? (content["parts"] ?? content) : content;

/** Decodes tools. Each type of hosted tool is its own member, and one entry can contain several. */
function toolsOf(tools: unknown): Tool[] {
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
function choiceOf(config: Opt<Json>): {
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

// Converts a schema in this protocol's OpenAPI form to JSON Schema, which other protocols use.

/** Members that contain a schema, a list of schemas, or schemas by name. */
const SCHEMA_MEMBERS = new Set([
  "items",
  "additionalProperties",
  "not",
  "contains",
  "propertyNames",
  "if",
  "then",
  "else",
]);
const SCHEMA_LIST_MEMBERS = new Set(["anyOf", "oneOf", "allOf", "prefixItems"]);
const SCHEMA_MAP_MEMBERS = new Set([
  "properties",
  "patternProperties",
  "$defs",
  "definitions",
  "dependentSchemas",
]);

/** Members with integers, which this protocol may also write as text. */
const INTEGER_MEMBERS = new Set([
  "minItems",
  "maxItems",
  "minLength",
  "maxLength",
  "minProperties",
  "maxProperties",
]);

const FIRST: ReadonlyMap<string, string> = snakeCaseNames([
  ...SCHEMA_LIST_MEMBERS,
  ...INTEGER_MEMBERS,
  "additionalProperties",
  "propertyOrdering",
]);

/**
 * Members that only this protocol has: the order of properties, and whether a value can be null.
 */
const OPENAPI_ONLY_MEMBERS = new Set(["propertyOrdering", "nullable"]);

const UNSPECIFIED = "TYPE_UNSPECIFIED";
const isUnspecified = (type: Json | undefined): boolean =>
  type === UNSPECIFIED ||
  (Array.isArray(type) && type.length > 0 && type.every((one) => one === UNSPECIFIED));

/** Returns the schema as JSON Schema. Returns the same object if it needs no change. */
function schemaOf(schema: JsonObject): JsonObject {
  let changed = false;
  const out: Record<string, Json | undefined> = {};
  for (const key in schema) {
    const value = schema[key];
    const name = FIRST.get(key) ?? key;
    if (OPENAPI_ONLY_MEMBERS.has(name) || (name === "type" && isUnspecified(value))) {
      changed = true;
      continue;
    }
    const converted = value === undefined ? value : wordOf(name, value);
    changed ||= converted !== value || name !== key;
    setOwnProperty(out, name, converted);
  }
  if (schema["nullable"] === true) withNull(out);
  return changed ? out : schema;
}

function wordOf(name: string, value: Json): Json {
  if (name === "type") return typeOf(value);
  if (SCHEMA_MEMBERS.has(name)) return isObject(value) ? schemaOf(value) : value;
  if (SCHEMA_LIST_MEMBERS.has(name))
    return Array.isArray(value) ? each(value as readonly Json[]) : value;
  if (SCHEMA_MAP_MEMBERS.has(name)) return isObject(value) ? byName(value) : value;
  if (INTEGER_MEMBERS.has(name) && typeof value === "string" && /^\d{1,15}$/.test(value))
    return Number(value);
  // Other members are unchanged. The OpenAPI format `enum` only means that the member `enum` is
  // present.
  return value;
}

/**
 * Converts a type: `STRING` becomes `string`. The default of the API's enum means that no type is
 * set, and JSON Schema has no name for it.
 */
function typeOf(value: Json): Json {
  if (typeof value === "string") return value.toLowerCase();
  return Array.isArray(value)
    ? (value as readonly Json[]).filter((one) => one !== UNSPECIFIED).map(typeOf)
    : value;
}

function each(all: readonly Json[]): Json {
  const converted = all.map((one) => (isObject(one) ? schemaOf(one) : one));
  return converted.every((one, i) => one === all[i]) ? all : converted;
}

function byName(all: JsonObject): Json {
  let changed = false;
  const out: Record<string, Json | undefined> = {};
  for (const name in all) {
    const value = all[name];
    const converted = isObject(value) ? schemaOf(value) : value;
    changed ||= converted !== value;
    setOwnProperty(out, name, converted);
  }
  return changed ? out : all;
}

function withNull(out: Record<string, Json | undefined>): void {
  const { type, enum: values } = out;
  if (typeof type === "string") out["type"] = [type, "null"];
  if (Array.isArray(values) && !values.includes(null))
    out["enum"] = [...(values as readonly Json[]), null];
}
