import type { IncomingMessage } from "node:http";
import { querySecretNamesOf } from "../../lib/query-secrets.ts";
import type { HeadersIn } from "../../model/values.ts";

/** Never shown to a plugin or a provider: `admit` gets the one secret that counts, and nothing else does. */
export const SECRET_HEADERS: ReadonlySet<string> = new Set([
  "authorization",
  "proxy-authorization",
  "cookie",
  "x-api-key",
  "api-key",
  "x-goog-api-key",
]);

/** The others. */
export function withoutSecretHeaders(headers: HeadersIn): HeadersIn {
  const left: Record<string, string | string[] | undefined> = {};
  for (const name in headers) if (!SECRET_HEADERS.has(name)) left[name] = headers[name];
  return left as HeadersIn;
}

/** Where a client has put what it presents, not what that is. */
export const credentialSourcesOf = (req: IncomingMessage): readonly string[] => [
  ...Object.keys(req.headers).filter((name) => SECRET_HEADERS.has(name)),
  ...querySecretNamesOf(req).map((name) => `?${name}`),
];
