// Settings of a remote server, and its errors.
import { isObject, type RpcResponse } from "../json-rpc.ts";
import type { Revision } from "../revisions.ts";
import { ServerError } from "../tool-server.ts";

/** Settings of a remote server. */
export interface RemoteServerSettings {
  readonly url: string;
  readonly revision: Revision | undefined;
  /** Maximum time without data, in milliseconds. */
  readonly idleMs: number;
}

/** Name of the gateway in messages to servers. */
export const GATEWAY_INFO = { name: "tollgate", version: "1" } as const;

/** Converts an error of JSON-RPC. The server did not run the request. */
export const toRpcError = (
  { code, message, data }: NonNullable<RpcResponse["error"]>,
  status: number,
): ServerError =>
  new ServerError(message.slice(0, 4_096), {
    code,
    progress: "rejected",
    status: status >= 300 ? status : undefined,
    ...(isObject(data) && { data }),
  });
