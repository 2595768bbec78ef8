import type { Json } from "../../model/values.ts";
import type { RouteResponse, HandlerRoute } from "../../plugin/frontend.ts";
import { ServedStream } from "../response/served-stream.ts";
import { yieldForLargeBody } from "../../lib/yield.ts";
import { createZdrHeaders } from "../privacy/zero-retention.ts";
import type { HostExchange } from "../exchange/exchange.ts";
import { readBody, prepareToReadBody, isBodiless, NO_BYTES } from "../body/read-body.ts";
import { NO_BODY, parseBody } from "../body/parse-body.ts";

/** Serves a route whose frontend answers requests itself. */
export async function serve(
  x: HostExchange,
  route: HandlerRoute,
  admit: (x: HostExchange) => void | Promise<void>,
): Promise<void> {
  if (!route.allowUnauthenticated) await admit(x);
  const { status, headers, body } = await callServeRoute(x, route);
  const { connection } = x.state;
  if (isStreamBody(body)) {
    const head = createServedHeaders(x, headers, "application/octet-stream");
    return new ServedStream(x, body).run(() => connection.res.writeHead(status, head));
  }
  const bytes = encodeBody(body);
  const head = createServedHeaders(x, headers, bytes && "application/json");
  if (bytes) head["content-length"] ??= String(bytes.length);
  connection.res.writeHead(status, head);
  connection.bytesOut += bytes?.length ?? 0;
  connection.res.end(x.method === "HEAD" ? undefined : bytes);
  return undefined;
}

async function callServeRoute(x: HostExchange, route: HandlerRoute): Promise<RouteResponse> {
  if (route.body === undefined) return route.handle(x);
  const bodiless = isBodiless(x.method);
  prepareToReadBody(x, bodiless ? "none" : route.body);
  const raw = bodiless ? NO_BYTES : await readBody(x);
  if (route.body === "bytes") return route.handle(x, raw);
  const { gen, connection } = x.state;
  const parsed = bodiless
    ? NO_BODY
    : await parseBody(raw, connection.req.headers["content-type"]!, gen.maxJsonValues);
  const pause = yieldForLargeBody(raw.length);
  if (pause) await pause;
  return route.handle(x, parsed.body);
}

const isStreamBody = (body: RouteResponse["body"]): body is AsyncIterable<string | Uint8Array> =>
  typeof body === "object" && body !== null && Symbol.asyncIterator in body;

const encodeBody = (body: Json | Buffer | undefined): Buffer | undefined =>
  body === undefined || Buffer.isBuffer(body) ? body : Buffer.from(JSON.stringify(body));

/**
 * Creates the response headers. The frontend's headers override the host's, and hooks' headers
 * override both.
 */
function createServedHeaders(
  x: HostExchange,
  said: RouteResponse["headers"],
  type: string | undefined,
): Record<string, string> {
  const { gen, outcome } = x.state;
  const headers: Record<string, string> = {
    "x-request-id": x.id,
    "x-tollgate-generation": String(gen.number),
    ...createZdrHeaders(x),
    ...(type !== undefined && { "content-type": type }),
  };
  for (const [name, value] of Object.entries(said ?? {}))
    if (value !== undefined) headers[name.toLowerCase()] = value;
  if (outcome.headers) for (const [name, value] of outcome.headers) headers[name] = value;
  return headers;
}
