// The frontend `mcp` with servers in memory, for laws with many generated worlds.
import { createTestContext, type TestContext } from "tollgate/testing";
import type { Context, RequestHead, RouteResponse } from "tollgate/plugin";
import mcp from "../../../../plugins/frontends/mcp.ts";

type Json = Record<string, any>;

export const META = "io.modelcontextprotocol/";
export const MODERN = "2026-07-28";
export const SESSION = "2025-11-25";
/** Credential of every client. No server may receive it. */
export const TOKEN = "tg_client-token-of-the-test";

/** A server in memory. */
export interface MemoryServer {
  /** `openapi`: an API whose operations are the tools. */
  readonly kind: "modern" | "session" | "openapi";
  tools: readonly Json[];
  readonly prompts?: readonly Json[];
  readonly resources?: readonly Json[];
  /** Default: all. */
  readonly capabilities?: Json;
  /** Options of the server, such as `tools`. */
  readonly rules?: Json;
  /** Notifications that a stream of events contains. */
  readonly events?: readonly Json[];
  call(params: Json, signal: AbortSignal): Response | Promise<Response>;
  /** Answers a message in place of the server. Undefined: the server answers. */
  override?(message: Json): Response | Promise<Response> | undefined;
  /** Changes a response on its way. */
  onResponse?(response: Response, message: Json, signal: AbortSignal): Response | Promise<Response>;
}

/** Returns a response of JSON-RPC. The ID "ID" is replaced by the ID of the request. */
export const rpc = (id: unknown, message: Json, headers: Json = {}, status = 200): Response =>
  new Response(JSON.stringify({ jsonrpc: "2.0", id, ...message }), {
    status,
    headers: { "content-type": "application/json", ...headers },
  });

const namesOf = ({ tools }: MemoryServer): string[] => tools.map(({ name }) => String(name));

const ALL_CAPABILITIES = { tools: {}, prompts: {}, resources: {}, completions: {} };

async function answer(server: MemoryServer, init: Json): Promise<Response> {
  const message = init["body"] === undefined ? {} : (JSON.parse(String(init["body"])) as Json);
  const signal = init["signal"] as AbortSignal;
  const response = (await server.override?.(message)) ?? (await respond(server, init, message));
  return server.onResponse?.(response, message, signal) ?? response;
}

async function respond(server: MemoryServer, init: Json, body: Json): Promise<Response> {
  const signal = init["signal"] as AbortSignal;
  const { id, method, params = {} } = body as { id?: unknown; method?: string; params?: Json };
  const instructions = namesOf(server).join(", ");
  const { capabilities = ALL_CAPABILITIES } = server;
  if (server.kind === "session") {
    if (init["method"] === "GET") return stream(server.events ?? [], signal);
    if (init["method"] !== "POST") return new Response(null, { status: 405 });
    if (method === "initialize")
      return rpc(
        id,
        {
          result: {
            protocolVersion: SESSION,
            capabilities,
            serverInfo: { name: "memory", version: "1" },
            instructions,
          },
        },
        { "mcp-session-id": "session" },
      );
    if (init["headers"]["mcp-session-id"] === undefined)
      return rpc(id, { error: { code: -32_000, message: "no session" } }, {}, 400);
    if (id === undefined || method === undefined) return new Response(null, { status: 202 });
    if (method === "resources/subscribe") return rpc(id, { result: {} });
  } else {
    if (init["method"] !== "POST") return new Response(null, { status: 405 });
    if (method === "server/discover")
      return rpc(id, {
        result: {
          resultType: "complete",
          supportedVersions: [MODERN],
          capabilities,
          instructions,
        },
      });
    if (method === "subscriptions/listen") {
      const meta = { _meta: { [`${META}subscriptionId`]: id } };
      const first = { method: "notifications/subscriptions/acknowledged", params: {} };
      const events = [first, ...(server.events ?? [])].map((event) => ({
        ...event,
        params: { ...event["params"], ...meta },
      }));
      return stream(events, signal);
    }
  }
  const { tools, prompts = [], resources = [] } = server;
  const lists: Json = {
    "tools/list": { tools },
    "prompts/list": { prompts },
    "resources/list": { resources },
    "resources/templates/list": { resourceTemplates: [] },
  };
  if (method! in lists) return rpc(id, { result: { resultType: "complete", ...lists[method!] } });
  if (method === "tools/call") return withId(await server.call(params, signal), id);
  // Any other answer of the server names all its tools.
  const names = namesOf(server);
  return rpc(id, {
    error: { code: -32_602, message: `Use ${names.join(" or ")}.`, data: { names } },
  });
}

async function withId(response: Response, id: unknown): Promise<Response> {
  // A body without an end is not read here.
  if (response.headers.has("x-endless") || response.body === null) return response;
  const text = await response.text();
  return new Response(text.replaceAll('"ID"', JSON.stringify(id)), response);
}

/** A stream that stays open after its events. */
function stream(events: readonly Json[], signal: AbortSignal): Response {
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      for (const event of events)
        controller.enqueue(
          Buffer.from(`data: ${JSON.stringify({ jsonrpc: "2.0", ...event })}\n\n`),
        );
      signal.addEventListener("abort", () => controller.error(new Error("aborted")), {
        once: true,
      });
    },
  });
  return new Response(body, { headers: { "content-type": "text/event-stream" } });
}

/** The document of an API. Each operation describes all of them. */
const documentOf = ({ tools }: MemoryServer): string =>
  JSON.stringify({
    openapi: "3.1.0",
    info: { title: "API", version: "1" },
    paths: Object.fromEntries(
      tools.map(({ name, description }) => [
        `/${name}`,
        { get: { operationId: name, description, responses: { 200: { description: "OK" } } } },
      ]),
    ),
  });

/** A request that a server received. */
export interface SentRequest {
  readonly server: string;
  readonly url: string;
  readonly headers: Json;
  readonly body: string;
  /** Calls that had no settle row when the request was sent. */
  readonly unsettled: number;
}

export interface Posting {
  readonly path?: string | undefined;
  /** Patterns of the key. Default: all tools. */
  readonly tools?: readonly string[] | undefined;
  readonly key?: string;
  readonly headers?: Json;
  readonly signal?: AbortSignal;
}

export interface Received {
  readonly status: number;
  readonly text: string;
  readonly headers: Json;
}

export interface MemoryFrontend {
  readonly test: TestContext;
  readonly sent: SentRequest[];
  /** Sends a message, and resolves with everything that the client receives. */
  post(body: Json | string, of: Posting): Promise<Received>;
  /** Opens the stream of a session. */
  openStream(of: Posting): Promise<Received>;
}

export async function startFrontend(
  servers: Readonly<Record<string, MemoryServer>>,
  openCall?: Context["openCall"],
): Promise<MemoryFrontend> {
  const sent: SentRequest[] = [];
  const apis = Object.entries(servers).filter(([, { kind }]) => kind === "openapi");
  const test = createTestContext({
    id: "frontends.mcp",
    ...(openCall && { openCall }),
    files: Object.fromEntries(apis.map(([name, server]) => [`${name}.json`, documentOf(server)])),
    fetch: async (url, init = {}) => {
      const { hostname } = new URL(url);
      const name = hostname.split(".")[0]!;
      const server = servers[name]!;
      sent.push({
        server: name,
        url: String(url),
        headers: init.headers as Json,
        body: String(init.body ?? ""),
        unsettled: test.openedCalls.filter(({ result }) => !result).length,
      });
      return server.kind === "openapi"
        ? server.call({ path: new URL(url).pathname }, init.signal!)
        : answer(server, init as Json);
    },
  });
  const options = {
    servers: Object.fromEntries(
      Object.entries(servers).map(([name, { kind, rules }]) => [
        name,
        {
          url: `https://${name}.example/mcp`,
          timeout_s: 5,
          zero_retention: false,
          ...(kind === "openapi" && {
            openapi: { document: `${name}.json`, max_response_bytes: 100_000 },
          }),
          ...rules,
        },
      ]),
    ),
    sets: {},
    accept: ["bearer"],
    list_ttl_s: 60,
    list_timeout_s: 60,
  };
  const frontend = await mcp.setup(options as never, test.ctx);
  const [post, get] = frontend.routes as unknown as {
    handle(x: RequestHead, body?: Buffer): Promise<RouteResponse>;
  }[];
  const requestOf = (of: Posting) =>
    ({
      id: "request",
      headers: { accept: "application/json, text/event-stream", ...of.headers },
      params: of.path === undefined ? {} : { name: of.path },
      signal: of.signal ?? new AbortController().signal,
      privacy: "off",
      identity: { id: of.key ?? "key", tools: of.tools },
      setRpcOperation() {},
    }) as unknown as RequestHead;
  return {
    test,
    sent,
    post: async (body, of) =>
      receive(
        await post!.handle(
          requestOf(of),
          Buffer.from(typeof body === "string" ? body : JSON.stringify(body)),
        ),
      ),
    openStream: async (of) => receive(await get!.handle(requestOf(of))),
  };
}

async function receive({ status, headers = {}, body }: RouteResponse): Promise<Received> {
  let text = "";
  if (body && typeof body === "object" && Symbol.asyncIterator in body)
    for await (const piece of body as AsyncIterable<string>) text += piece;
  else text = JSON.stringify(body ?? "");
  return { status, text, headers: headers as Json };
}

/** A message of the newest revision, with its headers. */
export function modernMessage(method: string, params: Json): { body: Json; headers: Json } {
  const name = params["name"] ?? params["uri"];
  const meta = {
    [`${META}protocolVersion`]: MODERN,
    [`${META}clientCapabilities`]: {},
    [`${META}logLevel`]: "debug",
  };
  return {
    body: { jsonrpc: "2.0", id: 1, method, params: { ...params, _meta: meta } },
    headers: {
      "mcp-protocol-version": MODERN,
      "mcp-method": method,
      ...(typeof name === "string" && { "mcp-name": name }),
      authorization: `Bearer ${TOKEN}`,
      cookie: TOKEN,
    },
  };
}

/** The message that a stream of events or a JSON body ends with. */
export function finalMessage({ text }: Received): Json {
  const events = text.split("\n").filter((line) => line.startsWith("data: "));
  const last = text.startsWith("{") ? text : events.at(-1)!.slice("data: ".length);
  return JSON.parse(last) as Json;
}
