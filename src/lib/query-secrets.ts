// Removes API keys from the query of a request's URL when the request arrives. Routes, plugins,
// providers, and logs see only the cleaned URL.
import type { IncomingMessage } from "node:http";

/** Query parameters (in any case) in which clients send a key if they cannot set a header. */
const SECRET_PARAMS: ReadonlySet<string> = new Set(["key", "api_key", "access_token"]);

type Query = Pick<URLSearchParams, "get" | "getAll" | "has">;

/** Shared by all requests without a query. Immutable. */
const EMPTY: Query = Object.freeze({ get: () => null, getAll: () => [], has: () => false });

/** Original queries of requests from which a secret was removed. */
const originalQueries = new WeakMap<IncomingMessage, string>();

/** Removes secrets from the request's URL. Called once, before any other code reads the URL. */
export function stripQuerySecrets(req: IncomingMessage): void {
  const url = req.url ?? "";
  const mark = url.indexOf("?");
  if (mark < 0) return;
  const query = url.slice(mark + 1);
  const pairs = query.split("&");
  const left = pairs.filter((pair) => !SECRET_PARAMS.has(nameOf(pair)));
  if (left.length === pairs.length) return;
  originalQueries.set(req, query);
  req.url = left.length === 0 ? url.slice(0, mark) : `${url.slice(0, mark)}?${left.join("&")}`;
}

/** Returns the query as the client sent it, for the code that reads the client's key. */
export function originalQueryOf(req: IncomingMessage): Query {
  const text = originalQueryTextOf(req);
  return text === "" ? EMPTY : new URLSearchParams(text);
}

/** Returns the original text of the query, for routes on which no parameter is a secret. */
export function originalQueryTextOf(req: IncomingMessage): string {
  const taken = originalQueries.get(req);
  if (taken !== undefined) return taken;
  const url = req.url ?? "";
  const mark = url.indexOf("?");
  return mark < 0 ? "" : url.slice(mark + 1);
}

/** Returns the names of the removed parameters, once per occurrence. */
export function querySecretNamesOf(req: IncomingMessage): readonly string[] {
  const taken = originalQueries.get(req);
  if (taken === undefined) return [];
  return taken
    .split("&")
    .map(nameOf)
    .filter((name) => SECRET_PARAMS.has(name));
}

/**
 * Returns the decoded parameter name, as a form parser reads it. Escapes are decoded once, and an
 * invalid escape is kept unchanged.
 */
function nameOf(pair: string): string {
  const end = pair.indexOf("=");
  const name = end < 0 ? pair : pair.slice(0, end);
  if (!name.includes("%") && !name.includes("+")) return name.toLowerCase();
  const [read = ""] = new URLSearchParams(`${name}=`).keys();
  return read.toLowerCase();
}
