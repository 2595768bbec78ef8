import type { IncomingMessage } from "node:http";
import { querySecretNamesOf } from "../../lib/query-secrets.ts";
import type { HeadersIn } from "../../model/values.ts";

/**
 * Headers with credentials. No plugin or provider sees them. `admit` receives only the secret that
 * identifies the client.
 */
export const SECRET_HEADERS: ReadonlySet<string> = new Set([
  "authorization",
  "proxy-authorization",
  "cookie",
  "x-api-key",
  "api-key",
  "x-goog-api-key",
  // The gateway's key, if the other headers contain the client's own credential for a provider.
  "x-tollgate-key",
  // Browsers send a credential in this header, because they cannot set any other header of a
  // WebSocket.
  "sec-websocket-protocol",
]);

/** Returns the headers without credentials. */
export function withoutSecretHeaders(headers: HeadersIn): HeadersIn {
  const left: Record<string, string | string[] | undefined> = {};
  for (const name in headers) if (!SECRET_HEADERS.has(name)) left[name] = headers[name];
  return left as HeadersIn;
}

/** Returns the places where the client put credentials, without the credentials themselves. */
export const credentialSourcesOf = (req: IncomingMessage): readonly string[] => [
  ...Object.keys(req.headers).filter((name) => SECRET_HEADERS.has(name)),
  ...querySecretNamesOf(req).map((name) => `?${name}`),
];

/** Maximum number of cookies that are read. */
const MAX_COOKIES = 50;

/**
 * Returns the cookies with these names. A cookie that was sent twice is omitted, because another
 * site may have set one of them.
 */
export function readCookies(
  req: IncomingMessage,
  names: readonly string[],
): { readonly [name: string]: string } {
  const found: Record<string, string> = Object.create(null) as Record<string, string>;
  const header = req.headers.cookie;
  if (names.length === 0 || header === undefined) return found;
  const twice = new Set<string>();
  for (const part of header.split(";", MAX_COOKIES)) {
    const at = part.indexOf("=");
    const name = part.slice(0, at).trim();
    if (at < 0 || !names.includes(name)) continue;
    if (name in found) twice.add(name);
    found[name] = part.slice(at + 1).trim();
  }
  for (const name of twice) delete found[name];
  return found;
}
