// Decides whether to read and discard the body of a request that is answered early. Discarding a
// small body keeps the connection open for the next request. Rejected clients then need no new
// connection, which matters most when many requests are rejected.
import type { IncomingHttpHeaders } from "node:http";

const MAX_BYTES = 64 * 1024;

/**
 * Whether the client declared the length of the body, the body is small, and the client sends it
 * without waiting for `100 Continue`.
 */
export const isSmallBody = (headers: IncomingHttpHeaders): boolean =>
  headers["transfer-encoding"] === undefined &&
  headers.expect === undefined &&
  Number(headers["content-length"] ?? Infinity) <= MAX_BYTES;
