// A request that is answered before its body has come: a small body is taken from the wire and thrown away, so that the connection
// lives for the next request. A refusal then costs its client no new connection, when there are most of them.
import type { IncomingHttpHeaders } from "node:http";

const MAX_BYTES = 64 * 1024;

/** Its client says how much comes, it is little, and it is on its way already. */
export const isSmallBody = (headers: IncomingHttpHeaders): boolean =>
  headers["transfer-encoding"] === undefined &&
  headers.expect === undefined &&
  Number(headers["content-length"] ?? Infinity) <= MAX_BYTES;
