// Tools of an OpenAPI document: each selected operation with its input schema and its request.
import type { Json, JsonObject } from "tollgate/plugin";
import { isObject, type Located, type OpenApiDocument } from "./document.ts";
import {
  listOperations,
  selectOperations,
  type Operation,
  type OperationSelection,
} from "./operations.ts";
import type {
  BodyBinding,
  ParameterBinding,
  ParameterPlace,
  ParameterStyle,
  RequestBinding,
} from "./request.ts";
import { SchemaConverter } from "./schema.ts";

/** Maximum number of tools of one document. */
const MAX_TOOLS = 500;
/** Maximum length of a tool's description in characters. */
const MAX_DESCRIPTION_LENGTH = 2_048;
/** Maximum length of an argument's name. Model providers accept no longer one. */
const MAX_ARGUMENT_LENGTH = 64;

/** An operation as a tool. */
export interface OperationTool {
  readonly name: string;
  readonly title: string | undefined;
  readonly description: string;
  readonly inputSchema: JsonObject;
  /** Hints of MCP about the effects of the tool, from the method. */
  readonly annotations: JsonObject;
  readonly request: RequestBinding;
}

/**
 * Returns the tools of the selected operations. Throws one error that lists all problems, each with
 * its line and column.
 */
export function createOperationTools(
  document: OpenApiDocument,
  selection: OperationSelection,
  nearest: (word: string, words: Iterable<string>) => string | undefined,
): readonly OperationTool[] {
  const selected = selectOperations(listOperations(document), selection, nearest);
  if (selected.length > MAX_TOOLS)
    throw new Error(
      `${selected.length} operations are selected, but at most ${MAX_TOOLS} can become tools; select fewer with \`operations\``,
    );
  const tools: OperationTool[] = [];
  const problems: string[] = [];
  for (const operation of selected)
    try {
      tools.push(createTool(document, operation));
    } catch (error) {
      problems.push((error as Error).message);
    }
  if (problems.length > 0) throw new Error(problems.join("; "));
  return tools;
}

function createTool(document: OpenApiDocument, operation: Operation): OperationTool {
  const { method, path, at, name } = operation;
  const schemas = new SchemaConverter(document);
  const properties: Record<string, Json> = {};
  const required: string[] = [];
  const parameters: ParameterBinding[] = [];
  const isTaken = (argument: string) => Object.hasOwn(properties, argument);
  for (const each of operation.parameters) {
    const read = readParameter(document, each, isTaken);
    if (!read) continue;
    properties[read.binding.argument] = schemaOf(document, schemas, each, read.schema);
    if (read.binding.required) required.push(read.binding.argument);
    parameters.push(read.binding);
  }
  assertTemplate(document, operation, parameters);
  const body = readBody(document, at, isTaken("body") ? "request_body" : "body");
  if (body) {
    properties[body.binding.argument] =
      body.schema === undefined ? {} : schemas.convert(body.schema);
    if (body.binding.required) required.push(body.binding.argument);
  }
  const { summary, description, deprecated } = at.value as JsonObject;
  const texts = [summary, description].filter((text) => typeof text === "string" && text !== "");
  if (deprecated === true) texts.push("Deprecated.");
  return {
    name,
    title: typeof summary === "string" ? summary.slice(0, 200) : undefined,
    description: (texts.join("\n\n") || `${method} ${path}`).slice(0, MAX_DESCRIPTION_LENGTH),
    inputSchema: {
      type: "object",
      properties,
      ...(required.length > 0 && { required }),
      additionalProperties: false,
    },
    annotations: annotationsOf(method),
    request: { method, path, parameters, body: body?.binding },
  };
}

const annotationsOf = (method: string): JsonObject => ({
  readOnlyHint: ["GET", "HEAD", "OPTIONS", "TRACE"].includes(method),
  destructiveHint: ["DELETE", "PUT", "PATCH"].includes(method),
  idempotentHint: method !== "POST" && method !== "PATCH",
  openWorldHint: true,
});

/** Headers that the document cannot set: the standard says so for three, and the host sets the others. */
const OWN_HEADERS = new Set([
  "accept",
  "content-type",
  "authorization",
  "host",
  "connection",
  "content-length",
  "transfer-encoding",
  "cookie",
  "proxy-authorization",
  "te",
  "trailer",
  "upgrade",
  "expect",
]);
const STYLES: Readonly<Record<ParameterPlace, readonly ParameterStyle[]>> = {
  path: ["simple", "label", "matrix"],
  query: ["form", "spaceDelimited", "pipeDelimited", "deepObject"],
  header: ["simple"],
  cookie: ["form"],
};

/** Reads a parameter. Returns undefined for a header that the document cannot set. */
function readParameter(
  document: OpenApiDocument,
  at: Located,
  isTaken: (argument: string) => boolean,
): { binding: ParameterBinding; schema: Located | undefined } | undefined {
  if (!isObject(at.value)) throw document.error(at.path, "must be a parameter");
  const { name, in: place, style, explode, allowReserved, required } = at.value;
  if (typeof name !== "string" || name === "") throw document.error(at.path, "lacks a name");
  if (typeof place !== "string" || !Object.hasOwn(STYLES, place))
    throw document.error(at.path, "`in` must be path, query, header, or cookie");
  if (place === "header") {
    if (OWN_HEADERS.has(name.toLowerCase())) return undefined;
    if (!/^[\w!#$%&'*+.^`|~-]+$/.test(name))
      throw document.error([...at.path, "name"], "is no name of a header");
  }
  const styles = STYLES[place as ParameterPlace];
  const used = (style ?? styles[0]) as ParameterStyle;
  if (!styles.includes(used))
    throw document.error([...at.path, "style"], `must be ${styles.join(", ")} in a ${place}`);
  const content = document.member(at, "content");
  const media = content && isObject(content.value) ? Object.keys(content.value) : undefined;
  if (media && !(media.length === 1 && isJsonType(media[0]!)))
    throw document.error(content!.path, "must have one media type, application/json");
  const argument = toArgument(name, place, isTaken);
  return {
    binding: {
      argument,
      name,
      in: place as ParameterPlace,
      style: used,
      explode: typeof explode === "boolean" ? explode : used === "form",
      allowReserved: allowReserved === true,
      required: place === "path" || required === true,
      json: media !== undefined,
    },
    schema: document.member(media ? document.member(content!, media[0]!)! : at, "schema"),
  };
}

/** Returns the schema of a parameter, with the description of the parameter. */
function schemaOf(
  document: OpenApiDocument,
  schemas: SchemaConverter,
  parameter: Located,
  schema: Located | undefined,
): JsonObject {
  const converted = schema ? schemas.convert(schema) : { type: "string" };
  const description = document.member(parameter, "description")?.value;
  return typeof description === "string" && converted["description"] === undefined
    ? { ...converted, description }
    : converted;
}

/** Returns a name of the characters that every model provider accepts, and that is not taken. */
function toArgument(name: string, place: string, isTaken: (argument: string) => boolean): string {
  const plain =
    name
      .replace(/[^\w.-]+/g, "_")
      .replace(/^_+|_+$/g, "")
      .slice(0, MAX_ARGUMENT_LENGTH) || place;
  if (!isTaken(plain)) return plain;
  for (let n = 1; ; n++) {
    const longer = `${place}_${plain}`.slice(0, MAX_ARGUMENT_LENGTH - 4) + (n === 1 ? "" : `_${n}`);
    if (!isTaken(longer)) return longer;
  }
}

/** Throws if the path contains a name without a parameter, or a parameter is not in the path. */
function assertTemplate(
  document: OpenApiDocument,
  { path, at }: Operation,
  parameters: readonly ParameterBinding[],
): void {
  const inPath = [...path.matchAll(/\{([^{}]*)\}/g)].map(([, name]) => name!);
  const described = parameters.filter((each) => each.in === "path").map(({ name }) => name);
  const missing = inPath.find((name) => !described.includes(name));
  if (missing !== undefined)
    throw document.error(at.path, `no path parameter describes "{${missing}}" of ${path}`);
  const unused = described.find((name) => !inPath.includes(name));
  if (unused !== undefined)
    throw document.error(at.path, `the path parameter "${unused}" is not in ${path}`);
}

/** Reads the body. The first media type that can be written is used, JSON before all others. */
function readBody(
  document: OpenApiDocument,
  operation: Located,
  argument: string,
): { binding: BodyBinding; schema: Located | undefined } | undefined {
  const member = document.member(operation, "requestBody");
  if (!member) return undefined;
  const at = document.resolve(member);
  const content = document.member(at, "content");
  const types = content && isObject(content.value) ? Object.keys(content.value) : [];
  const required = isObject(at.value) && at.value["required"] === true;
  for (const form of ["json", "form", "text"] as const) {
    const mediaType = types.find(BODY_FORMS[form]);
    if (mediaType === undefined) continue;
    const schema = document.member(document.member(content!, mediaType)!, "schema");
    return { binding: { argument, mediaType, form, required }, schema };
  }
  throw document.error(
    (content ?? at).path,
    `the body must be JSON, a URL-encoded form, or text, not ${types.join(", ") || "undefined"}; leave the operation out with \`exclude\``,
  );
}

const isJsonType = (type: string): boolean =>
  /^application\/(?:[\w.+-]+\+)?json\s*(?:;|$)/i.test(type);

const BODY_FORMS: Readonly<Record<BodyBinding["form"], (type: string) => boolean>> = {
  json: isJsonType,
  form: (type) => /^application\/x-www-form-urlencoded\s*(?:;|$)/i.test(type),
  text: (type) => /^text\/[\w.+-]+\s*(?:;|$)/i.test(type),
};
