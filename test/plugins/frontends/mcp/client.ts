// A client of MCP for tests: it sends single messages and returns everything that it receives.
import { createEventDecoder } from "tollgate/protocols/sse";

type Json = Record<string, any>;

export interface McpAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly result: Json | undefined;
  readonly error: { code: number; message: string; data?: Json } | undefined;
  /** Messages before the result. */
  readonly messages: readonly Json[];
  /** Everything that was received, as text. */
  readonly text: string;
}

export interface McpClientOptions {
  readonly url: string;
  readonly key: string;
  readonly capabilities?: Json;
  /** Called for each message before the result. */
  onMessage?(message: Json): void;
}

const META = "io.modelcontextprotocol/";
export const MODERN = "2026-07-28";
let lastId = 0;

/** Sends one message in the newest revision. `change` changes the headers and the body. */
export function sendModern(
  { url, key, capabilities = {}, onMessage }: McpClientOptions,
  method: string,
  params: Json = {},
  change: { headers?: Json; body?: Json; signal?: AbortSignal } = {},
): Promise<McpAnswer> {
  const name = params["name"] ?? params["uri"];
  const body = {
    jsonrpc: "2.0",
    id: ++lastId,
    method,
    params: {
      ...params,
      _meta: {
        [`${META}protocolVersion`]: MODERN,
        [`${META}clientInfo`]: { name: "test", version: "1" },
        [`${META}clientCapabilities`]: capabilities,
        ...params["_meta"],
      },
    },
    ...change.body,
  };
  const headers = {
    "mcp-protocol-version": MODERN,
    "mcp-method": method,
    ...(typeof name === "string" && method !== "completion/complete" && { "mcp-name": name }),
    ...change.headers,
  };
  return send({ url, key, headers, body, onMessage, signal: change.signal });
}

/** Opens a session, and returns a function that sends messages in it. */
export async function openSession(
  options: McpClientOptions,
  revision = "2025-11-25",
): Promise<{
  readonly id: string;
  readonly opened: McpAnswer;
  send(
    method: string,
    params?: Json,
    change?: { id?: unknown; signal?: AbortSignal },
  ): Promise<McpAnswer>;
  post(body: Json): Promise<McpAnswer>;
}> {
  const { url, key, capabilities = {}, onMessage } = options;
  const params = {
    protocolVersion: revision,
    capabilities,
    clientInfo: { name: "test", version: "1" },
  };
  const opened = await send({
    url,
    key,
    headers: {},
    body: { jsonrpc: "2.0", id: ++lastId, method: "initialize", params },
  });
  const id = opened.headers.get("mcp-session-id") ?? "";
  const headers = { "mcp-session-id": id, "mcp-protocol-version": revision };
  const post = (body: Json) => send({ url, key, headers, body });
  return {
    id,
    opened,
    post,
    send: (method, more = {}, change = {}) =>
      send({
        url,
        key,
        headers,
        body: { jsonrpc: "2.0", id: change.id ?? ++lastId, method, params: more },
        signal: change.signal,
        onMessage: (message) => {
          onMessage?.(message);
        },
      }),
  };
}

export async function send(of: {
  readonly url: string;
  readonly key: string;
  readonly headers: Json;
  readonly body: Json | string;
  readonly signal?: AbortSignal | undefined;
  readonly onMessage?: ((message: Json) => void) | undefined;
}): Promise<McpAnswer> {
  const response = await fetch(of.url, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      authorization: `Bearer ${of.key}`,
      ...of.headers,
    },
    body: typeof of.body === "string" ? of.body : JSON.stringify(of.body),
    ...(of.signal && { signal: of.signal }),
  });
  const { status, headers } = response;
  const messages: Json[] = [];
  let text = "";
  if ((headers.get("content-type") ?? "").startsWith("text/event-stream")) {
    const decoder = createEventDecoder((_, data) => {
      const message = JSON.parse(data) as Json;
      messages.push(message);
      if (message["method"]) of.onMessage?.(message);
    });
    for await (const piece of response.body!) {
      text += Buffer.from(piece).toString();
      decoder.push(Buffer.from(piece));
    }
  } else {
    text = await response.text();
    if (text.startsWith("{")) messages.push(JSON.parse(text) as Json);
  }
  const last = messages.at(-1);
  const isFinal = last !== undefined && last["method"] === undefined;
  return {
    status,
    headers,
    result: isFinal ? last["result"] : undefined,
    error: isFinal ? last["error"] : undefined,
    messages: isFinal ? messages.slice(0, -1) : messages,
    text,
  };
}
