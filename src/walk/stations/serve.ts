import type { Json } from "../../model/values.ts";
import type { ServedAnswer, ServeRoute } from "../../plugin/frontend.ts";
import { ServedStream } from "../answer/served-stream.ts";
import { breath } from "../bounds/turn.ts";
import { receipts } from "../candidates/privacy.ts";
import type { HostExchange } from "../exchange.ts";
import { collect, expect, isBodiless, NO_BYTES } from "../request/collect.ts";
import { NO_BODY, understand } from "../request/understand.ts";

/** A route that its frontend answers itself. */
export async function serve(
  x: HostExchange,
  route: ServeRoute,
  admit: (x: HostExchange) => void | Promise<void>,
): Promise<void> {
  if (!route.open) await admit(x);
  const { status, headers, body } = await answered(x, route);
  if (isStream(body)) {
    const head = headOf(x, headers, "application/octet-stream");
    return new ServedStream(x, body).run(() => x["~"].res.writeHead(status, head));
  }
  const inner = x["~"];
  const bytes = bytesOf(body);
  const head = headOf(x, headers, bytes && "application/json");
  if (bytes) head["content-length"] ??= String(bytes.length);
  inner.res.writeHead(status, head);
  inner.bytesOut += bytes?.length ?? 0;
  inner.res.end(x.method === "HEAD" ? undefined : bytes);
  return undefined;
}

async function answered(x: HostExchange, route: ServeRoute): Promise<ServedAnswer> {
  if (route.body === undefined) return route.serve(x);
  const bodiless = isBodiless(x.method);
  expect(x, bodiless ? "none" : route.body);
  const raw = bodiless ? NO_BYTES : await collect(x);
  if (route.body === "bytes") return route.serve(x, raw);
  const { gen, req } = x["~"];
  const understood = bodiless
    ? NO_BODY
    : await understand(raw, req.headers["content-type"]!, gen.maxValues);
  const pause = breath(raw.length);
  if (pause) await pause;
  return route.serve(x, understood.body);
}

const isStream = (body: ServedAnswer["body"]): body is AsyncIterable<string | Uint8Array> =>
  typeof body === "object" && body !== null && Symbol.asyncIterator in body;

const bytesOf = (body: Json | Buffer | undefined): Buffer | undefined =>
  body === undefined || Buffer.isBuffer(body) ? body : Buffer.from(JSON.stringify(body));

/** What the frontend says of its answer stands over the host's own; what hooks say stands over both. */
function headOf(
  x: HostExchange,
  said: ServedAnswer["headers"],
  type: string | undefined,
): Record<string, string> {
  const inner = x["~"];
  const headers: Record<string, string> = {
    "x-request-id": x.id,
    "x-tollgate-generation": String(inner.gen.number),
    ...receipts(x),
    ...(type !== undefined && { "content-type": type }),
  };
  for (const [name, value] of Object.entries(said ?? {}))
    if (value !== undefined) headers[name.toLowerCase()] = value;
  if (inner.headers) for (const [name, value] of inner.headers) headers[name] = value;
  return headers;
}
