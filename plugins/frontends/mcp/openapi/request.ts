// The HTTP request of an operation: each argument of the tool is written where and how the OpenAPI
// document describes it.
import type { Json, JsonObject } from "tollgate/plugin";
import { isObject } from "./document.ts";

/** Part of the request that contains a parameter. */
export type ParameterPlace = "path" | "query" | "header" | "cookie";
export type ParameterStyle =
  | "simple"
  | "label"
  | "matrix"
  | "form"
  | "spaceDelimited"
  | "pipeDelimited"
  | "deepObject";

/** How one argument becomes a parameter of the request. */
export interface ParameterBinding {
  /** Name of the argument of the tool. */
  readonly argument: string;
  /** Name of the parameter in the request. */
  readonly name: string;
  readonly in: ParameterPlace;
  readonly style: ParameterStyle;
  readonly explode: boolean;
  readonly allowReserved: boolean;
  readonly required: boolean;
  /** Whether the value is sent as JSON text. */
  readonly json: boolean;
}

/** How the argument `body` becomes the body of the request. */
export interface BodyBinding {
  readonly argument: string;
  readonly mediaType: string;
  readonly form: "json" | "form" | "text";
  readonly required: boolean;
}

/** How the arguments of a tool become a request. */
export interface RequestBinding {
  readonly method: string;
  /** Path template, such as `/invoices/{id}`. */
  readonly path: string;
  readonly parameters: readonly ParameterBinding[];
  readonly body: BodyBinding | undefined;
}

/** A request to the API, without its credential. */
export interface ApiRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | undefined;
}

/** An argument that cannot be sent. Its message is for the model that called the tool. */
export class ArgumentError extends Error {}

/** Maximum length of the URL in characters. */
const MAX_URL_LENGTH = 16_384;

/**
 * Returns the request of a call. Throws an `ArgumentError` for arguments that are missing, unknown,
 * or not of the described form.
 * @param baseUrl URL that the operator configured. The request never leaves it.
 */
export function buildRequest(
  { method, path, parameters, body }: RequestBinding,
  baseUrl: string,
  input: JsonObject,
): ApiRequest {
  assertKnownArguments(input, parameters, body);
  const segments = new Map<string, string>();
  const query: string[] = [];
  const cookies: string[] = [];
  const headers: Record<string, string> = {};
  for (const parameter of parameters) {
    const value = readArgument(input, parameter.argument, parameter.required);
    if (value === undefined) continue;
    const pairs = writeParameter(parameter, value);
    if (parameter.in === "path") segments.set(parameter.name, pairs.join(""));
    else if (parameter.in === "query") query.push(...pairs);
    else if (parameter.in === "cookie") cookies.push(...pairs);
    else headers[parameter.name.toLowerCase()] = toHeaderValue(parameter, pairs.join(""));
  }
  if (cookies.length > 0) headers["cookie"] = cookies.join("; ");
  const content = body && readArgument(input, body.argument, body.required);
  if (body && content !== undefined) headers["content-type"] = body.mediaType;
  return {
    method,
    url: toUrl(baseUrl, fillTemplate(path, segments), query),
    headers,
    body: body && content !== undefined ? writeBody(body, content) : undefined,
  };
}

function assertKnownArguments(
  input: JsonObject,
  parameters: readonly ParameterBinding[],
  body: BodyBinding | undefined,
): void {
  const known = [...parameters.map(({ argument }) => argument), ...(body ? [body.argument] : [])];
  const unknown = Object.keys(input).filter((name) => !known.includes(name));
  if (unknown.length > 0)
    throw new ArgumentError(
      `Unknown argument "${unknown[0]!.slice(0, 100)}". The arguments are ${known.join(", ") || "none"}.`,
    );
}

function readArgument(input: JsonObject, name: string, required: boolean): Json | undefined {
  const value = Object.hasOwn(input, name) ? input[name] : undefined;
  // An argument that is null is omitted: many models send null for arguments that they do not set.
  if (value !== undefined && value !== null) return value;
  if (required) throw new ArgumentError(`The argument "${name}" is missing.`);
  return undefined;
}

/** Returns the texts of a parameter: one for each `name=value` of a query or of cookies. */
function writeParameter(parameter: ParameterBinding, value: Json): readonly string[] {
  const { in: place, name } = parameter;
  const named = place === "query" || place === "cookie";
  const encode = encoderOf(parameter);
  if (parameter.json || !isStructured(value)) {
    const text = parameter.json ? JSON.stringify(value) : toText(parameter, value);
    if (place === "path" && text === "")
      throw new ArgumentError(`The argument "${parameter.argument}" must not be empty.`);
    const encoded = encode(text);
    if (named) return [`${encodeName(name)}=${encoded}`];
    return [PREFIXES[parameter.style](name, encoded)];
  }
  const written = Array.isArray(value)
    ? writeList(
        parameter,
        value.map((each) => encode(toText(parameter, each))),
      )
    : writeObject(
        parameter,
        Object.entries(value as JsonObject)
          .filter(([, each]) => each !== undefined && each !== null)
          .map(([key, each]) => [encode(key), encode(toText(parameter, each!))] as const),
      );
  if (place === "path" && written.join("") === "")
    throw new ArgumentError(`The argument "${parameter.argument}" must not be empty.`);
  return written;
}

/** Writes one value that is no list and no object, in the styles of paths and headers. */
const PREFIXES: Readonly<Record<ParameterStyle, (name: string, value: string) => string>> = {
  simple: (_, value) => value,
  label: (_, value) => `.${value}`,
  matrix: (name, value) => `;${encodeName(name)}=${value}`,
  form: (_, value) => value,
  spaceDelimited: (_, value) => value,
  pipeDelimited: (_, value) => value,
  deepObject: (_, value) => value,
};

/** Separators of lists that are not exploded. */
const DELIMITERS: Partial<Record<ParameterStyle, string>> = {
  spaceDelimited: "%20",
  pipeDelimited: "%7C",
};

/** Joins encoded values. Throws if one of them contains the separator, which cannot be expressed. */
function join(
  { argument, style }: ParameterBinding,
  values: readonly string[],
  delimiter = DELIMITERS[style] ?? ",",
): string {
  if (values.some((value) => value.includes(delimiter)))
    throw new ArgumentError(
      `A value of the argument "${argument}" contains "${decodeURIComponent(delimiter)}", which separates the values.`,
    );
  return values.join(delimiter);
}

function writeList(parameter: ParameterBinding, values: readonly string[]): readonly string[] {
  const { in: place, style, explode, name } = parameter;
  if (values.length === 0) return [];
  if (place === "query" || place === "cookie") {
    const own = encodeName(name);
    return explode
      ? values.map((value) => `${own}=${value}`)
      : [`${own}=${join(parameter, values)}`];
  }
  if (style === "label") return [`.${join(parameter, values, explode ? "." : ",")}`];
  if (style === "matrix") {
    const own = `;${encodeName(name)}=`;
    return [explode ? values.map((value) => own + value).join("") : own + join(parameter, values)];
  }
  return [join(parameter, values)];
}

function writeObject(
  parameter: ParameterBinding,
  members: readonly (readonly [name: string, value: string])[],
): readonly string[] {
  const { in: place, style, explode, name } = parameter;
  if (members.length === 0) return [];
  const own = encodeName(name);
  const pairs = members.map(([key, value]) => `${key}=${value}`);
  if (place === "query" || place === "cookie") {
    if (style === "deepObject") return members.map(([key, value]) => `${own}%5B${key}%5D=${value}`);
    return explode ? pairs : [`${own}=${join(parameter, members.flat())}`];
  }
  if (style === "label")
    return [`.${explode ? join(parameter, pairs, ".") : join(parameter, members.flat())}`];
  if (style === "matrix")
    return [
      explode
        ? pairs.map((pair) => `;${pair}`).join("")
        : `;${own}=${join(parameter, members.flat())}`,
    ];
  return [join(parameter, explode ? pairs : members.flat())];
}

const isStructured = (value: Json): boolean => typeof value === "object" && value !== null;

function toText({ argument }: ParameterBinding, value: Json): string {
  if (typeof value === "string") return value;
  if (typeof value === "number" || typeof value === "boolean") return String(value);
  throw new ArgumentError(
    `The argument "${argument}" is nested too deeply: lists and objects contain only strings, numbers, and booleans.`,
  );
}

/** Encodes everything that has a meaning in a URL, or in one of the styles. */
const encodeAll = (text: string): string => {
  try {
    return encodeURIComponent(text).replace(
      /[!'()*.]/g,
      (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`,
    );
  } catch {
    throw new ArgumentError("An argument contains half of a surrogate pair.");
  }
};

/** Characters that `allowReserved` leaves as they are. The others would end or split the query. */
const RESERVED = /%(?:3A|2F|3F|40|21|24|27|28|29|2A|3B)/g;

/** Encodes a name. Brackets and dots are common in names, and safe. */
const encodeName = (name: string): string => encodeURIComponent(name);

function encoderOf({ in: place, style, allowReserved }: ParameterBinding) {
  if (place === "header") return (text: string) => text;
  if (place === "query" && allowReserved)
    return (text: string) => encodeAll(text).replace(RESERVED, decodeURIComponent);
  // A dot separates values in the style `label` only.
  return style === "label" ? encodeAll : (text: string) => encodeAll(text).replaceAll("%2E", ".");
}

function toHeaderValue({ argument }: ParameterBinding, text: string): string {
  if (!/^[\t\x20-\x7e\x80-\xff]*$/.test(text))
    throw new ArgumentError(
      `The argument "${argument}" is sent in a header, which contains no line breaks and only Latin-1 characters.`,
    );
  return text;
}

function fillTemplate(template: string, segments: ReadonlyMap<string, string>): string {
  return template.replace(/\{([^{}]*)\}/g, (_, name: string) => {
    const text = segments.get(name);
    if (text === undefined) throw new ArgumentError(`The argument "${name}" is missing.`);
    return text;
  });
}

/** Returns the URL. Throws if an argument would lead out of the described path. */
function toUrl(baseUrl: string, path: string, query: readonly string[]): string {
  const base = new URL(baseUrl);
  const pathname = base.pathname.replace(/\/$/, "") + path;
  const inherited = base.search.slice(1);
  const search = [...(inherited === "" ? [] : [inherited]), ...query].join("&");
  const url = `${base.origin}${pathname}${search === "" ? "" : `?${search}`}`;
  if (url.length > MAX_URL_LENGTH)
    throw new ArgumentError(`The arguments are too long: the URL has ${url.length} characters.`);
  const hasDots = pathname.split("/").some((segment) => /^(?:\.|%2e){1,2}$/i.test(segment));
  if (hasDots) throw new ArgumentError('An argument in the path must not be "." or "..".');
  return url;
}

function writeBody({ form, argument }: BodyBinding, content: Json): string {
  if (form === "json") return JSON.stringify(content);
  if (form === "text")
    return typeof content === "string"
      ? content
      : fail(`The argument "${argument}" must be a string.`);
  if (!isObject(content)) return fail(`The argument "${argument}" must be an object.`);
  const fields = new URLSearchParams();
  for (const [name, value] of Object.entries(content)) {
    if (value === undefined || value === null) continue;
    for (const each of Array.isArray(value) ? value : [value])
      fields.append(name, isStructured(each) ? JSON.stringify(each) : String(each));
  }
  return fields.toString();
}

const fail = (message: string): never => {
  throw new ArgumentError(message);
};
