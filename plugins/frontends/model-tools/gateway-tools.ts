// MCP servers of the gateway, as requests to models use them. Lists and calls are subrequests to the
// frontend `mcp`, so its permissions, conditions, prices, and ledger rows apply.
import { hash } from "node:crypto";
import {
  fail,
  getFault,
  type Context,
  type HeadersOut,
  type Json,
  type JsonObject,
  type RequestHead,
} from "tollgate/plugin";
import { encodeHeaderValue, mirrorArguments } from "../mcp/header-values.ts";
import { isObject } from "../mcp/json-rpc.ts";
import { readHeaderArguments } from "../mcp/list-entries.ts";
import { META, REVISIONS } from "../mcp/revisions.ts";

/** A tool that the model can call. */
export interface OfferedTool {
  /** Path of its server at this gateway. */
  readonly path: string;
  /** Name of the server in the request. */
  readonly server: string;
  /** Name of the tool at its path. */
  readonly name: string;
  /** Name of the function that the model sees. */
  readonly functionName: string;
  readonly description: string | undefined;
  readonly inputSchema: JsonObject;
  readonly annotations: JsonObject;
  readonly isReadOnly: boolean;
}

/** Whether the model may call a tool. */
export type ToolFilter = (tool: Pick<OfferedTool, "name" | "isReadOnly">) => boolean;

/** A server of the gateway that a request names. */
export interface RequestedServer {
  readonly name: string;
  /** Path at this gateway. */
  readonly path: string;
  /** Path in the body, for errors. */
  readonly param: string;
  readonly isAllowed: ToolFilter;
}

/** Whether a tool of a request is a server, whose tools replace it. */
export const isServer = <S extends RequestedServer>(tool: JsonObject | S): tool is S =>
  "isAllowed" in tool && typeof tool.isAllowed === "function";

/** Result of a call, as text for the model. */
export interface ToolResult {
  readonly text: string;
  readonly error: ToolError | undefined;
}

/** Error of a call: of the tool itself, or of the protocol or the gateway. */
export type ToolError =
  | { readonly type: "tool"; readonly content: Json }
  | { readonly type: "protocol"; readonly code: number; readonly message: string };

/** Largest number of pages of a list. */
const MAX_PAGES = 20;
const MAX_NAME_LENGTH = 64;
const HASH_LENGTH = 8;
/** A path of the frontend `mcp`. */
const MCP_PATH = /^\/mcp(?:\/[a-z][a-z0-9-]{0,30})?$/;

/** Returns the name of a function for a tool. It is the same in every request. */
export function functionNameOf(server: string, tool: string): string {
  const name = `${server}__${tool}`;
  const valid = name.replaceAll(/[^\w-]/g, "_");
  if (valid === name && name.length <= MAX_NAME_LENGTH) return name;
  const digest = hash("sha256", name).slice(0, HASH_LENGTH);
  return `${valid.slice(0, MAX_NAME_LENGTH - HASH_LENGTH - 1)}_${digest}`;
}

export class GatewayTools {
  readonly #ctx: Pick<Context, "sendSubrequest">;
  readonly #origins: ReadonlySet<string>;

  constructor(ctx: Pick<Context, "sendSubrequest">, origins: readonly string[]) {
    this.#ctx = ctx;
    this.#origins = new Set(origins.map((one) => URL.parse(one)?.origin ?? one));
  }

  /**
   * Returns the path of a server of this gateway. Undefined for the URL of any other server. A URL
   * of this gateway is a path such as "/mcp/github", or has the host of the request or an origin of
   * the options.
   */
  pathOf(x: Pick<RequestHead, "headers">, address: unknown): string | undefined {
    if (typeof address !== "string") return undefined;
    if (MCP_PATH.test(address)) return address;
    const url = URL.parse(address);
    if (!url || (url.protocol !== "https:" && url.protocol !== "http:")) return undefined;
    if (url.host !== x.headers["host"] && !this.#origins.has(url.origin)) return undefined;
    const path = url.pathname.replace(/\/$/, "");
    return MCP_PATH.test(path) ? path : undefined;
  }

  /** Returns the tools of a server that the client may call and the request selects. */
  async list(
    x: RequestHead,
    server: RequestedServer,
    signal: AbortSignal,
  ): Promise<readonly OfferedTool[]> {
    const tools: OfferedTool[] = [];
    let cursor: string | undefined;
    for (let page = 0; page < MAX_PAGES; page++) {
      const params: JsonObject = cursor === undefined ? {} : { cursor };
      const { result, error } = await this.#request(
        x,
        server.path,
        { method: "tools/list", params },
        signal,
      );
      if (!result) return failList(server, error);
      for (const item of Array.isArray(result["tools"]) ? result["tools"] : []) {
        const tool = toOfferedTool(server, item as JsonObject);
        if (server.isAllowed(tool)) tools.push(tool);
      }
      const next = result["nextCursor"];
      if (typeof next !== "string") break;
      cursor = next;
    }
    return tools;
  }

  /** Calls a tool. Rejects if the client's request was canceled or the gateway itself failed. */
  async call(
    x: RequestHead,
    { path, name, inputSchema }: OfferedTool,
    args: JsonObject,
    signal: AbortSignal,
  ): Promise<ToolResult> {
    const headers = {
      "mcp-name": encodeHeaderValue(name),
      ...mirrorArguments(readHeaderArguments(inputSchema) ?? [], args),
    };
    const params = { name, arguments: args };
    const { result, error } = await this.#request(
      x,
      path,
      { method: "tools/call", params, headers },
      signal,
    );
    if (!result) return protocolError(error.code, error.message);
    if (result["resultType"] === "input_required")
      return protocolError(-32_603, "The tool needs input of a user, which is not available here.");
    const content = Array.isArray(result["content"]) ? result["content"] : [];
    const text = textOf(content, result["structuredContent"]);
    return {
      text,
      error: result["isError"] === true ? { type: "tool", content } : undefined,
    };
  }

  async #request(
    x: RequestHead,
    path: string,
    of: { readonly method: string; readonly params: JsonObject; readonly headers?: HeadersOut },
    signal: AbortSignal,
  ): Promise<RpcOutcome> {
    const { method, params } = of;
    const _meta = {
      [META.protocolVersion]: REVISIONS[0],
      [META.clientInfo]: { name: "tollgate", version: "1" },
      [META.clientCapabilities]: {},
    };
    const headers = {
      accept: "application/json, text/event-stream",
      "mcp-protocol-version": REVISIONS[0],
      "mcp-method": method,
      ...of.headers,
    };
    const body = { jsonrpc: "2.0", id: 1, method, params: { ...params, _meta } };
    let message: unknown;
    const onEvent = (data: string) => {
      const received = JSON.parse(data) as JsonObject;
      if (received["id"] === 1) message = received;
    };
    try {
      const request = { path, body, headers };
      const got = await this.#ctx.sendSubrequest(request, { parentRequest: x, signal, onEvent });
      message ??= got.body;
    } catch (problem) {
      if (signal.aborted) throw problem;
      const fault = getFault(problem);
      if (!fault || fault.kind === "internal" || fault.kind === "canceled") throw problem;
      return { result: undefined, error: { code: -32_000, message: fault.message } };
    }
    return readOutcome(message);
  }
}

type RpcOutcome =
  | { readonly result: JsonObject; readonly error?: undefined }
  | {
      readonly result: undefined;
      readonly error: { readonly code: number; readonly message: string };
    };

function readOutcome(message: unknown): RpcOutcome {
  const { result, error } = isObject(message) ? message : {};
  if (isObject(result)) return { result };
  const { code, message: text, data } = isObject(error) ? error : {};
  const links = isObject(data) && Array.isArray(data["elicitations"]) ? data["elicitations"] : [];
  const urls = links.flatMap((one) =>
    isObject(one) && typeof one["url"] === "string" ? [one["url"]] : [],
  );
  const words = typeof text === "string" ? text : "The server returned no result.";
  return {
    result: undefined,
    error: {
      code: typeof code === "number" ? code : -32_603,
      message: [words, ...urls].join(" "),
    },
  };
}

function toOfferedTool({ path, name: server }: RequestedServer, item: JsonObject): OfferedTool {
  const { description, inputSchema } = item;
  const name = String(item["name"]);
  const annotations = isObject(item["annotations"]) ? item["annotations"] : {};
  return {
    path,
    server,
    name,
    functionName: functionNameOf(server, name),
    description: typeof description === "string" ? description : undefined,
    inputSchema: isObject(inputSchema) ? inputSchema : { type: "object" },
    annotations,
    isReadOnly: annotations["readOnlyHint"] === true,
  };
}

/** A server that cannot list its tools is an error, and never an empty list. */
const failList = (
  { name, param }: RequestedServer,
  { message }: { readonly message: string },
): never =>
  fail("upstream", `Cannot list the tools of the MCP server "${name.slice(0, 64)}": ${message}`, {
    param,
    code: "mcp_list_failed",
  });

export const protocolError = (code: number, message: string): ToolResult => ({
  text: message,
  error: { type: "protocol", code, message },
});

/** Returns the result as text. Images and audio are described, because functions return text. */
function textOf(content: readonly Json[], structured: Json | undefined): string {
  const parts = content.map((part) => {
    if (!isObject(part)) return "";
    const { type, text, resource, uri, mimeType } = part;
    if (type === "text") return String(text);
    if (type === "resource" && isObject(resource) && typeof resource["text"] === "string")
      return resource["text"];
    if (type === "resource_link") return `[${String(uri)}]`;
    return `[${String(type)} ${typeof mimeType === "string" ? mimeType : ""}]`;
  });
  if (parts.length === 0 && structured !== undefined) return JSON.stringify(structured);
  return parts.join("\n");
}
