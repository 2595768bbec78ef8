// Keys that stand in an address. They are taken out of it when a request comes in: what is left is what routes, plugins,
// providers and logs see.
import type { IncomingMessage } from "node:http";

/** By any of these names, in any case: what clients call a key where they cannot set a header. */
const SECRET_PARAMS: ReadonlySet<string> = new Set(["key", "api_key", "access_token"]);

type Query = Pick<URLSearchParams, "get" | "getAll" | "has">;

/** One for all requests without a query; nothing can be put into it. */
const EMPTY: Query = Object.freeze({ get: () => null, getAll: () => [], has: () => false });

/** As it came, where something was taken out. */
const originalQueries = new WeakMap<IncomingMessage, string>();

/** Once, before anything else looks at the address. */
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

/** The query as the client wrote it, for the one look at secrets. */
export function originalQueryOf(req: IncomingMessage): Query {
  const text = originalQueryTextOf(req);
  return text === "" ? EMPTY : new URLSearchParams(text);
}

/** The same as text, for an address in which no name means a secret. */
export function originalQueryTextOf(req: IncomingMessage): string {
  const taken = originalQueries.get(req);
  if (taken !== undefined) return taken;
  const url = req.url ?? "";
  const mark = url.indexOf("?");
  return mark < 0 ? "" : url.slice(mark + 1);
}

/** The names that were taken out, each as often as it stood there. */
export function querySecretNamesOf(req: IncomingMessage): readonly string[] {
  const taken = originalQueries.get(req);
  if (taken === undefined) return [];
  return taken
    .split("&")
    .map(nameOf)
    .filter((name) => SECRET_PARAMS.has(name));
}

/** As a reader of forms understands it: escapes are undone once, and one that is none stands for itself. */
function nameOf(pair: string): string {
  const end = pair.indexOf("=");
  const name = end < 0 ? pair : pair.slice(0, end);
  if (!name.includes("%") && !name.includes("+")) return name.toLowerCase();
  const [read = ""] = new URLSearchParams(`${name}=`).keys();
  return read.toLowerCase();
}
