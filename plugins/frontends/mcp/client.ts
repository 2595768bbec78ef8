// The client of one request: its revision, capabilities, and permissions.
import type { JsonObject, RequestHead } from "tollgate/plugin";
import { decodeHeaderValue, matchesHeader } from "./header-values.ts";
import { ClientError, isObject, RPC_ERRORS, type RpcRequest } from "./json-rpc.ts";
import type { ListEntry, ClientProfile } from "./mounted-server.ts";
import { isModern, META, REVISIONS, SESSION_REVISIONS } from "./revisions.ts";
import type { Scope } from "./scopes.ts";

/** The client of one request. */
export interface Client {
  readonly x: RequestHead;
  readonly scope: Scope;
  readonly profile: ClientProfile;
  /** Whether each request carries its own metadata, and there is no session. */
  readonly isModern: boolean;
}

const headerOf = (x: RequestHead, name: string): string | undefined => {
  const value = x.headers[name];
  return Array.isArray(value) ? value.join(", ") : value;
};

/**
 * Whether a request belongs to a session: it has no revision in its metadata, and no header of a
 * revision without sessions.
 */
export function usesSession(x: RequestHead, { params }: RpcRequest): boolean {
  const meta = params["_meta"];
  if (isObject(meta) && meta[META.protocolVersion] !== undefined) return false;
  const header = headerOf(x, "mcp-protocol-version");
  return header === undefined || (SESSION_REVISIONS as readonly string[]).includes(header);
}

/** Reads the metadata of a request without a session, and compares its headers to its body. */
export function readModernClient(x: RequestHead, scope: Scope, message: RpcRequest): Client {
  const { method, params } = message;
  const meta = isObject(params["_meta"]) ? params["_meta"] : {};
  const version = meta[META.protocolVersion];
  const header = headerOf(x, "mcp-protocol-version");
  if (header === undefined) throw mismatch("the header MCP-Protocol-Version is missing");
  if (version !== undefined && header !== version)
    throw mismatch("MCP-Protocol-Version differs from the revision in _meta");
  if (!isModern(header)) throw unsupportedRevision(header);
  if (typeof version !== "string") throw missingMeta(META.protocolVersion);
  const capabilities = meta[META.clientCapabilities];
  if (!isObject(capabilities)) throw missingMeta(META.clientCapabilities);
  if (headerOf(x, "mcp-method") !== method)
    throw mismatch("Mcp-Method is missing or differs from the method in the body");
  const named = method === "tools/call" || method === "prompts/get" ? "name" : "uri";
  if (method === "tools/call" || method === "prompts/get" || method === "resources/read") {
    const given = headerOf(x, "mcp-name");
    const name = given === undefined ? undefined : decodeHeaderValue(given);
    if (name === undefined || name !== params[named])
      throw mismatch(`Mcp-Name is missing, not valid, or differs from params.${named}`);
  }
  const { [META.clientInfo]: info, [META.logLevel]: level } = meta;
  return {
    x,
    scope: { ...scope, capabilities },
    isModern: true,
    profile: {
      capabilities,
      clientInfo: isObject(info) ? info : undefined,
      logLevel: typeof level === "string" ? level : undefined,
      sessionId: "",
    },
  };
}

/** Compares the headers that mirror arguments of a call to the arguments. */
export function assertArgumentHeaders(
  x: RequestHead,
  { mirrored }: ListEntry,
  valueAt: (path: readonly string[]) => unknown,
): void {
  for (const { header, path } of mirrored)
    if (!matchesHeader(headerOf(x, header), valueAt(path)))
      throw mismatch(`${header} is missing, not valid, or differs from the argument`);
}

const mismatch = (flaw: string) =>
  new ClientError(RPC_ERRORS.headerMismatch, `Header mismatch: ${flaw}.`, { status: 400 });

const missingMeta = (name: string) =>
  new ClientError(RPC_ERRORS.invalidParams, `Missing required field in _meta: ${name}`, {
    status: 400,
  });

/** Error for a revision that the gateway does not speak. */
export const unsupportedRevision = (requested: string) =>
  new ClientError(RPC_ERRORS.unsupportedVersion, "Unsupported protocol version", {
    status: 400,
    data: { supported: [...REVISIONS], requested: requested.slice(0, 64) } as JsonObject,
  });
