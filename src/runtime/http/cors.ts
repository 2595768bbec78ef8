// Sets the CORS headers for pages on a listed origin. Requests from other origins were rejected
// before.
import type { IncomingMessage, ServerResponse } from "node:http";

/** Allowed request headers, listed by name because `*` does not cover `authorization`. */
const ALLOWED_HEADERS = [
  "authorization",
  "content-type",
  "x-api-key",
  "api-key",
  "x-goog-api-key",
  "x-tollgate-key",
  "x-goog-api-client",
  "anthropic-version",
  "anthropic-beta",
  "anthropic-dangerous-direct-browser-access",
  "openai-organization",
  "openai-project",
  "openai-beta",
  "openai-safety-identifier",
  "x-openai-agents-sdk",
  "service-zdr",
  "x-tollgate-cost",
  "x-request-id",
  "idempotency-key",
  "traceparent",
  "tracestate",
].join(", ");

const EXPOSED_HEADERS = [
  "location",
  "x-request-id",
  "request-id",
  "retry-after",
  "retry-after-ms",
  "service-zdr",
  "service-zdr-policy",
  "x-tollgate-warnings",
  "x-tollgate-generation",
  "x-tollgate-attempts",
  "x-tollgate-budget",
  "x-tollgate-cost",
  "x-tollgate-provider",
  "server-timing",
].join(", ");

/** Sets the CORS headers of a response to a page. */
export function setCorsHeaders(req: IncomingMessage, res: ServerResponse): void {
  const { origin } = req.headers;
  if (origin === undefined) return;
  res.setHeader("access-control-allow-origin", origin);
  res.setHeader("access-control-expose-headers", EXPOSED_HEADERS);
  res.setHeader("vary", "Origin");
}

/**
 * Answers a preflight request. Returns whether the request was a preflight request. SDKs in a
 * browser send their own headers, so headers with a known prefix are echoed.
 */
export function answerPreflight(req: IncomingMessage, res: ServerResponse): boolean {
  const { headers } = req;
  if (
    req.method !== "OPTIONS" ||
    headers.origin === undefined ||
    headers["access-control-request-method"] === undefined
  )
    return false;
  const own = (headers["access-control-request-headers"] ?? "")
    .split(",")
    .map((name) => name.trim().toLowerCase())
    .filter((name) => /^x-stainless-[a-z-]{1,40}$/.test(name));
  setCorsHeaders(req, res);
  res.writeHead(204, {
    "access-control-allow-methods": "GET, POST, DELETE",
    "access-control-allow-headers": [ALLOWED_HEADERS, ...own].join(", "),
    "access-control-max-age": "7200",
  });
  res.end();
  return true;
}
