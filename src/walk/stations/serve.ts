import type { ServeRoute } from "../../plugin/frontend.ts";
import type { HostExchange } from "../exchange.ts";
import { receipts } from "../candidates/privacy.ts";

/** A route that its frontend answers itself. */
export async function serve(
  x: HostExchange,
  route: ServeRoute,
  admit: (x: HostExchange) => Promise<void>,
): Promise<void> {
  if (!route.open) await admit(x);
  const served = await route.serve(x);
  const inner = x["~"];
  const bytes =
    served.body === undefined
      ? undefined
      : Buffer.isBuffer(served.body)
        ? served.body
        : Buffer.from(JSON.stringify(served.body));
  const headers: Record<string, string> = {
    "x-request-id": x.id,
    "x-tollgate-generation": String(inner.gen.number),
    ...receipts(x),
  };
  if (bytes) {
    headers["content-type"] = "application/json";
    headers["content-length"] = String(bytes.length);
  }
  for (const [name, value] of Object.entries(served.headers ?? {}))
    if (value !== undefined) headers[name] = value;
  if (inner.headers) for (const [name, value] of inner.headers) headers[name] = value;
  inner.res.writeHead(served.status, headers);
  inner.bytesOut += bytes?.length ?? 0;
  inner.res.end(x.method === "HEAD" ? undefined : bytes);
}
