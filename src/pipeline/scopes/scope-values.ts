// Reads the values that name the members of scopes. Clients choose these values, so they are
// bounded and checked before a call is reserved.
import { BOUNDS } from "../../lib/bounds.ts";
import type { ScopeConfig, ScopeSource } from "../../config/gateway-config.ts";
import { failBoundExceeded } from "../../model/bound-exceeded.ts";
import { fail } from "../../model/error.ts";
import type { HostExchange } from "../exchange/exchange.ts";

/** Values by scope name. Values of labels are read with each call, because hooks add labels. */
type ScopeValues = ReadonlyMap<string, string>;
/** Values of all sources that are headers, in the order of the config. */
type HeaderValues = readonly (string | undefined)[];
type HeaderSource = Extract<ScopeSource, { readonly kind: "header" }>;

const HEADER_TEXT = /^[\x20-\x7e]+$/;
const CONTROL_CHARACTER = /\p{Cc}|\p{Zl}|\p{Zp}/u;

/**
 * Reads the values of all headers. Called before the body is read. Throws if a header contains an
 * invalid value.
 */
export function readScopeHeaders(x: HostExchange): void {
  const { billing, gen } = x.state;
  billing.scopeHeaders = readHeaders(x, gen.scopes.configs);
}

/** Returns the values of a request, or of the request that a subrequest is made for. */
export function scopeValuesOf(x: HostExchange): ScopeValues {
  const parent = x.subrequestOrigin?.parentRequest;
  if (parent) return scopeValuesOf(parent);
  const { billing, gen } = x.state;
  return (billing.scopeValues ??= readScopeValues(x, gen.scopes.configs, billing.scopeHeaders));
}

/**
 * Returns the value of each scope: the value of its first source that has one. All sources are
 * read, so an invalid value is always rejected.
 * @param headers Values of the headers, if they were read before.
 */
export function readScopeValues(
  x: HostExchange,
  scopes: readonly ScopeConfig[],
  headers: HeaderValues = readHeaders(x, scopes),
): ScopeValues {
  const values = new Map<string, string>();
  let nextHeader = 0;
  for (const { name, from } of scopes) {
    let found: string | undefined;
    for (const source of from) {
      const value = source.kind === "header" ? headers[nextHeader++] : readSource(x, name, source);
      found ??= value;
    }
    if (found !== undefined) values.set(name, found);
  }
  return values;
}

function readSource(
  x: HostExchange,
  scope: string,
  source: Exclude<ScopeSource, HeaderSource>,
): string | undefined {
  switch (source.kind) {
    case "body":
      return readBody(x, scope, source);
    case "key":
      return x.identity!.id;
    case "account":
      return x.state.admission.account?.path;
    case "label":
      return undefined;
  }
}

function readHeaders(x: HostExchange, scopes: readonly ScopeConfig[]): HeaderValues {
  const values: (string | undefined)[] = [];
  for (const { name, from } of scopes)
    for (const source of from)
      if (source.kind === "header") values.push(readHeader(x, name, source));
  return values;
}

function readHeader(
  x: HostExchange,
  scope: string,
  { name, text }: HeaderSource,
): string | undefined {
  const value = x.headers[name];
  if (value === undefined || value === "") return undefined;
  // Node joins the values of a repeated header with commas.
  const isRepeated =
    value.includes(",") && (x.state.connection.req.headersDistinct?.[name]?.length ?? 1) > 1;
  if (typeof value !== "string" || isRepeated)
    return rejectValue(scope, text, name, "it must be sent once");
  if (!HEADER_TEXT.test(value))
    return rejectValue(scope, text, name, "it must consist of printable ASCII characters");
  return checkLength(value, name);
}

function readBody(
  x: HostExchange,
  scope: string,
  { path, text }: Extract<ScopeSource, { kind: "body" }>,
): string | undefined {
  let value: unknown = x.body;
  for (const name of path) {
    if (typeof value !== "object" || value === null || Array.isArray(value)) return undefined;
    value = Object.hasOwn(value, name) ? (value as { [name: string]: unknown })[name] : undefined;
  }
  if (value === undefined || value === null || value === "") return undefined;
  const param = path.join(".");
  if (typeof value !== "string") return rejectValue(scope, text, param, "it must be a string");
  if (CONTROL_CHARACTER.test(value) || !value.isWellFormed())
    return rejectValue(scope, text, param, "it must not contain control characters");
  return checkLength(value, param);
}

const checkLength = (value: string, param: string): string =>
  value.length <= BOUNDS.scopeValue.max
    ? value
    : failBoundExceeded("scopeValue", undefined, { param });

const rejectValue = (scope: string, text: string, param: string, why: string): never =>
  fail("invalid", `Invalid value of ${text} for the scope "${scope}": ${why}.`, {
    param,
    code: "invalid_scope_value",
  });

/** Throws if a scope requires a value. */
export const rejectMissingValue = ({ name, from }: ScopeConfig): never =>
  fail(
    "invalid",
    `Missing value for the scope "${name}". Send it as ${from.map(({ text }) => text).join(" or ")}.`,
    { code: "missing_scope_value" },
  );
