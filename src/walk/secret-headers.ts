/** Never shown to a plugin or a provider: `admit` gets the one secret that counts, and nothing else does. */
export const SECRET_HEADERS: ReadonlySet<string> = new Set([
  "authorization",
  "proxy-authorization",
  "cookie",
  "x-api-key",
  "api-key",
  "x-goog-api-key",
]);
