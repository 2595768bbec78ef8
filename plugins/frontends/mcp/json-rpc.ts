// Messages of JSON-RPC, as clients and servers send them, with the error codes of MCP.
import type { Json, JsonObject, Opt } from "tollgate/plugin";
import { ServerError } from "./tool-server.ts";

/** ID of a request. */
export type RpcId = string | number;

/** A request, or a notification if it has no ID. */
export interface RpcRequest {
  readonly jsonrpc: "2.0";
  readonly id?: Opt<RpcId>;
  readonly method: string;
  readonly params: JsonObject;
}

/** Response to a request of the gateway. */
export interface RpcResponse {
  readonly id: RpcId;
  readonly result?: Opt<JsonObject>;
  readonly error?: Opt<{ code: number; message: string; data?: Opt<Json> }>;
}

export const RPC_ERRORS = {
  parse: -32_700,
  invalidRequest: -32_600,
  methodNotFound: -32_601,
  invalidParams: -32_602,
  internal: -32_603,
  /** Errors of implementations, as the SDKs of the revisions with sessions use them. */
  implementation: -32_000,
  sessionNotFound: -32_001,
  resourceNotFound: -32_002,
  headerMismatch: -32_020,
  missingCapability: -32_021,
  unsupportedVersion: -32_022,
} as const;

/** Error that a client receives, with the status of the HTTP response. */
export class ClientError extends Error {
  override readonly name = "ClientError";
  readonly code: number;
  readonly status: number;
  readonly data: Opt<JsonObject>;

  constructor(code: number, message: string, of: { status?: number; data?: Opt<JsonObject> } = {}) {
    super(message);
    this.code = code;
    this.status = of.status ?? 200;
    this.data = of.data;
  }
}

/** Maximum nesting depth of a message. */
const MAX_DEPTH = 64;

/** Maximum number of JSON values in a message of a server. Results can contain long lists. */
const MAX_SERVER_VALUES = 1_000_000;

/** Whether JSON text is nested deeper than a limit. Reads each character once. */
export const isTooDeep = (text: string, max = MAX_DEPTH): boolean =>
  findExcess(text, { depth: max, values: Infinity }) === "depth";

/**
 * Returns the first bound that JSON text exceeds. Reads each character at most twice. The whole
 * text, each list, each object, and each comma count as 1 value.
 */
function findExcess(
  text: string,
  max: { readonly depth: number; readonly values: number },
): "depth" | "values" | undefined {
  if (text.length < max.values && !hasMoreBrackets(text, max.depth)) return undefined;
  let depth = 0;
  let values = 1;
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at);
    if (unit === 0x22) {
      at = endOfString(text, at);
    } else if (unit === 0x7b || unit === 0x5b) {
      if (++depth > max.depth) return "depth";
      if (++values > max.values) return "values";
    } else if (unit === 0x7d || unit === 0x5d) depth--;
    else if (unit === 0x2c && ++values > max.values) return "values";
  }
  return undefined;
}

/**
 * Whether text has more than a number of opening brackets, including those in strings. Most messages
 * have few, so their depth needs no further check.
 */
function hasMoreBrackets(text: string, max: number): boolean {
  let left = max;
  for (const bracket of BRACKETS)
    for (let at = text.indexOf(bracket); at >= 0; at = text.indexOf(bracket, at + 1))
      if (--left < 0) return true;
  return false;
}
const BRACKETS = ["{", "["] as const;

/** Returns the position of the closing quote. */
function endOfString(text: string, start: number): number {
  for (let at = start + 1; ;) {
    const quote = text.indexOf('"', at);
    if (quote < 0) return text.length;
    let slashes = 0;
    while (text.charCodeAt(quote - 1 - slashes) === 0x5c) slashes++;
    if (slashes % 2 === 0) return quote;
    at = quote + 1;
  }
}

export const isObject = (value: unknown): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value);

export const isRpcId = (value: unknown): value is RpcId =>
  typeof value === "string" || (typeof value === "number" && Number.isFinite(value));

/** Longest ID of a request, in characters. */
const MAX_ID_LENGTH = 256;

/**
 * Parses the body of a client. Throws a `ClientError` if it is not one message, or if it has more
 * JSON values than `maxValues`.
 */
export function parseClientMessage(body: Buffer, maxValues: number): RpcRequest | RpcResponse {
  const text = body.toString("utf8");
  const excess = findExcess(text, { depth: MAX_DEPTH, values: maxValues });
  if (excess === "depth")
    throw invalidRequest(`The message is nested deeper than ${MAX_DEPTH} levels.`);
  if (excess === "values")
    throw invalidRequest(
      `The message has more than ${maxValues} JSON values, which is the maximum of the gateway. Send long data as text, or in several requests.`,
    );
  let message: unknown;
  try {
    message = JSON.parse(text);
  } catch {
    throw new ClientError(RPC_ERRORS.parse, "The body is not valid JSON.", { status: 400 });
  }
  if (Array.isArray(message))
    throw invalidRequest("Batches are not supported. Send one message per request.");
  if (!isObject(message) || message["jsonrpc"] !== "2.0")
    throw invalidRequest('The body must be a JSON-RPC message with "jsonrpc": "2.0".');
  const { id, method, params } = message;
  if (id !== undefined && (!isRpcId(id) || String(id).length > MAX_ID_LENGTH))
    throw invalidRequest(
      `id must be a number, or a string with up to ${MAX_ID_LENGTH} characters.`,
    );
  if (method === undefined && id !== undefined && ("result" in message || "error" in message))
    return message as unknown as RpcResponse;
  if (typeof method !== "string") throw invalidRequest("method must be a string.");
  if (params !== undefined && !isObject(params)) throw invalidRequest("params must be an object.");
  return {
    jsonrpc: "2.0",
    method,
    params: params ?? {},
    ...(id !== undefined && { id: id as RpcId }),
  };
}

const invalidRequest = (message: string) =>
  new ClientError(RPC_ERRORS.invalidRequest, message, { status: 400 });

/** Checks a message of a server. Throws a `ServerError` if it is not a message. */
export function checkServerMessage(text: string): RpcRequest | RpcResponse {
  const excess = findExcess(text, { depth: MAX_DEPTH, values: MAX_SERVER_VALUES });
  if (excess === "depth") throw wrongShape("is nested too deep");
  if (excess === "values") throw wrongShape(`has more than ${MAX_SERVER_VALUES} JSON values`);
  let message: unknown;
  try {
    message = JSON.parse(text);
  } catch {
    throw wrongShape("is not valid JSON");
  }
  if (!isObject(message) || message["jsonrpc"] !== "2.0") throw wrongShape("is not JSON-RPC");
  const { id, method, params, result, error } = message;
  if (typeof method === "string") {
    if (params !== undefined && !isObject(params)) throw wrongShape("has params of the wrong type");
    return { jsonrpc: "2.0", method, params: params ?? {}, ...(isRpcId(id) && { id }) };
  }
  if (isObject(error) && typeof error["code"] === "number" && typeof error["message"] === "string")
    return message as unknown as RpcResponse;
  if (!isObject(result)) throw wrongShape("has no result");
  if (!isRpcId(id)) throw wrongShape("has no id");
  return message as unknown as RpcResponse;
}

/** Error for a request that was canceled before it was sent. */
export const canceledError = (): ServerError =>
  new ServerError("The request was canceled before it was sent.", {
    code: RPC_ERRORS.internal,
    progress: "unsent",
  });

/** Error for a response that does not conform to MCP. The server may have run the request. */
export const wrongShape = (flaw: string) =>
  new ServerError(`The response of the server ${flaw}.`, {
    code: RPC_ERRORS.internal,
    progress: "unknown",
  });

export const isResponse = (message: RpcRequest | RpcResponse): message is RpcResponse =>
  !("method" in message);

/**
 * Returns JSON with sorted keys, so that equal values have equal texts. Names that are indexes of
 * arrays come first, by their number, as in every object of JavaScript.
 */
export function canonicalJson(value: unknown): string {
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(",")}]`;
  const names = Object.keys(value);
  // The engine lists the indexes first, in order.
  const start = names.findIndex((name) => !isIndex(name));
  const indexes = names.splice(0, start < 0 ? names.length : start);
  let text = "";
  for (const name of indexes.concat(names.sort())) {
    const inner = (value as JsonObject)[name];
    if (inner === undefined) continue;
    text += `${text === "" ? "" : ","}${JSON.stringify(name)}:${canonicalJson(inner)}`;
  }
  return `{${text}}`;
}

/** Whether a name is an index of arrays. */
function isIndex(name: string): boolean {
  const first = name.charCodeAt(0);
  // Most names do not begin with a digit.
  if (!(first >= 0x30 && first <= 0x39)) return false;
  const value = Number(name);
  return value < 2 ** 32 - 1 && String(value) === name && Number.isInteger(value);
}
