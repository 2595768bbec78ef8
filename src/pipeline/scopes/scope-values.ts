// Reads the values that name the members of scopes. Clients choose these values, so they are
// bounded and checked before a call is reserved.
import type { ScopeConfig, ScopeSource } from "../../config/gateway-config.ts";
import { fail } from "../../model/error.ts";
import type { HostExchange } from "../exchange/exchange.ts";
import { checkLength, rejectValue, type ScopeHeaders } from "./scope-headers.ts";

/** Values by scope name. Values of labels are read with each call, because hooks add labels. */
type ScopeValues = ReadonlyMap<string, string>;

const CONTROL_CHARACTER = /\p{Cc}|\p{Zl}|\p{Zp}/u;

/**
 * Reads the values of all headers. Called before the body is read. Throws if a header contains an
 * invalid value.
 */
export function readScopeHeaders(x: HostExchange): void {
  const { billing, gen } = x.state;
  billing.scopeHeaders = gen.scopes.headers.read(x);
}

/** Returns the values of a request, or of the request that a subrequest is made for. */
export function scopeValuesOf(x: HostExchange): ScopeValues {
  const parent = x.subrequestOrigin?.parentRequest;
  if (parent) return scopeValuesOf(parent);
  const { billing, gen } = x.state;
  const { scopes } = gen;
  return (billing.scopeValues ??= readScopeValues(
    x,
    scopes.configs,
    billing.scopeHeaders ?? scopes.headers.read(x),
  ));
}

/**
 * Returns the value of each scope: the value of its first source that has one. All sources are
 * read, so an invalid value is always rejected.
 */
export function readScopeValues(
  x: HostExchange,
  scopes: readonly ScopeConfig[],
  headers: ScopeHeaders,
): ScopeValues {
  let values: Map<string, string> | undefined;
  let nextHeader = 0;
  for (const { name, from } of scopes) {
    let found: string | undefined;
    for (const source of from) {
      const value =
        source.kind === "header" ? headers.texts[nextHeader++] : readSource(x, name, source);
      found ??= value;
    }
    if (found !== undefined && found !== headers.values.get(name))
      (values ??= new Map(headers.values)).set(name, found);
  }
  return values ?? headers.values;
}

function readSource(
  x: HostExchange,
  scope: string,
  source: Exclude<ScopeSource, { readonly kind: "header" }>,
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

/** Throws if a scope requires a value. */
export const rejectMissingValue = ({ name, from }: ScopeConfig): never =>
  fail(
    "invalid",
    `Missing value for the scope "${name}". Send it as ${from.map(({ text }) => text).join(" or ")}.`,
    { code: "missing_scope_value" },
  );
