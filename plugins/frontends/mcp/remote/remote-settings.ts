// Settings of a remote server, and its errors.
import { isObject, type RpcResponse } from "../json-rpc.ts";
import type { Revision } from "../revisions.ts";
import { ServerError } from "../tool-server.ts";

/** Settings of a remote server. */
export interface RemoteServerSettings {
  /** Name under `servers:` in the options. */
  readonly name: string;
  readonly url: string | URL;
  readonly revision: Revision | undefined;
  /** Maximum time without data, in milliseconds. */
  readonly idleMs: number;
}

/** Name of the gateway in messages to servers. */
export const GATEWAY_INFO = { name: "tollgate", version: "1" } as const;

/** Converts an error of JSON-RPC. The server did not run the request. */
export const toRpcError = (
  { code, message, data }: NonNullable<RpcResponse["error"]>,
  { status, server }: { readonly status: number; readonly server: string },
): ServerError =>
  new ServerError(message.slice(0, 4_096), {
    code,
    server,
    progress: "rejected",
    status: status >= 300 ? status : undefined,
    ...(isObject(data) && { data }),
  });

/** Shows revisions that a server states. Any other text of it is not shown. */
export function showRevisions(stated: readonly unknown[]): string {
  const known = stated.filter((one) => /^\d{4}-\d{2}-\d{2}$/.test(String(one))).slice(0, 10);
  if (known.length === 0) return "an unknown revision";
  return `the revision${known.length > 1 ? "s" : ""} ${known.join(", ")}`;
}
