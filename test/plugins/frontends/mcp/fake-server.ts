// An MCP server for tests, in the newest revision or in one with sessions. Tools are named after
// their behavior. It records the requests that it received.
import { randomUUID } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

type Json = Record<string, any>;

export interface FakeServerOptions {
  readonly revision: "2026-07-28" | "2025-11-25" | "2025-06-18" | "2025-03-26";
  /** Names of the tools, or complete definitions. Default: echo. */
  readonly tools?: readonly (string | Json)[];
  readonly prompts?: readonly Json[];
  readonly resources?: readonly Json[];
  readonly instructions?: string;
  /** Returns the result of a tool, or writes the response itself and returns undefined. */
  call?(call: ToolCall): Promise<Json | undefined> | Json | undefined;
}

export interface ToolCall {
  readonly name: string;
  readonly args: Json;
  readonly params: Json;
  readonly id: unknown;
  readonly session: string | undefined;
  readonly res: ServerResponse;
  /** Sends a message before the result. */
  send(message: Json): void;
  /** Sends a request to the client, and resolves with its response. Servers with sessions only. */
  ask(method: string, params: Json): Promise<Json>;
}

export interface ReceivedRequest {
  readonly method: string;
  readonly headers: IncomingMessage["headers"];
  readonly body: Json;
}

export interface FakeServer extends AsyncDisposable {
  readonly url: string;
  readonly received: ReceivedRequest[];
  readonly sessions: Set<string>;
  tools: readonly (string | Json)[];
  /** Whether requests for lists wait. They get their responses when it becomes false. */
  hangs: boolean;
  /** Sends a notification to all streams of events. */
  emit(method: string, params?: Json): void;
}

const toTool = (tool: string | Json): Json =>
  typeof tool === "string"
    ? { name: tool, description: `Tool ${tool}`, inputSchema: { type: "object" } }
    : tool;

export async function startFakeServer(of: FakeServerOptions): Promise<FakeServer> {
  const isModern = of.revision === "2026-07-28";
  const received: ReceivedRequest[] = [];
  const sessions = new Set<string>();
  const streams = new Set<(message: Json) => void>();
  const waiting = new Map<string, (message: Json) => void>();
  const state = { tools: of.tools ?? ["echo"], hangs: false, held: [] as (() => void)[] };
  const resultOf = (method: string): Json | undefined => {
    switch (method) {
      case "tools/list":
        return { tools: state.tools.map(toTool) };
      case "prompts/list":
        return { prompts: of.prompts ?? [] };
      case "resources/subscribe":
      case "resources/unsubscribe":
        return {};
      case "resources/list":
        return { resources: of.resources ?? [] };
      case "resources/templates/list":
        return { resourceTemplates: [] };
      default:
        return undefined;
    }
  };
  const capabilities = {
    tools: { listChanged: true },
    ...(of.prompts && { prompts: {} }),
    ...(of.resources && { resources: {} }),
  };
  const reply = (res: ServerResponse, message: Json, status = 200, headers: Json = {}) => {
    if (res.headersSent) return void res.end(`data: ${JSON.stringify(message)}\n\n`);
    res.writeHead(status, { "content-type": "application/json", ...headers });
    res.end(JSON.stringify(message));
  };
  const open = (res: ServerResponse) => {
    if (!res.headersSent) res.writeHead(200, { "content-type": "text/event-stream" });
  };
  async function handle(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const pieces: Buffer[] = [];
    for await (const piece of req) pieces.push(piece as Buffer);
    const body = (pieces.length > 0 ? JSON.parse(Buffer.concat(pieces).toString()) : {}) as Json;
    received.push({ method: String(body["method"] ?? req.method), headers: req.headers, body });
    const { id, method, params = {} } = body as { id?: any; method?: string; params?: Json };
    const fail = (status: number, code: number, message: string, data?: Json) =>
      reply(res, { jsonrpc: "2.0", id, error: { code, message, data } }, status);
    const session = req.headers["mcp-session-id"] as string | undefined;
    if (!isModern) {
      if (req.method === "GET") {
        open(res);
        res.flushHeaders();
        const send = (message: Json) => void res.write(`data: ${JSON.stringify(message)}\n\n`);
        streams.add(send);
        return void res.on("close", () => streams.delete(send));
      }
      if (req.method === "DELETE")
        return (sessions.delete(session!), void res.writeHead(200).end());
      if (method === "initialize") {
        const own = randomUUID();
        sessions.add(own);
        const result = {
          protocolVersion: of.revision,
          capabilities,
          serverInfo: { name: "fake", version: "1" },
          instructions: of.instructions,
        };
        return reply(res, { jsonrpc: "2.0", id, result }, 200, { "mcp-session-id": own });
      }
      if (session === undefined) return fail(400, -32_000, "Bad Request: no session");
      if (!sessions.has(session)) return fail(404, -32_001, "Session not found");
      if (method === undefined) {
        waiting.get(String(id))?.(body);
        return void res.writeHead(202).end();
      }
      if (id === undefined) return void res.writeHead(202).end();
    } else {
      if (req.method !== "POST") return void res.writeHead(405).end();
      const version = params["_meta"]?.["io.modelcontextprotocol/protocolVersion"];
      if (version !== of.revision || req.headers["mcp-protocol-version"] !== version)
        return fail(400, -32_022, "Unsupported protocol version", { supported: [of.revision] });
      if (req.headers["mcp-method"] !== method) return fail(400, -32_020, "Header mismatch");
      if (method === "server/discover") {
        const result = {
          resultType: "complete",
          supportedVersions: [of.revision],
          capabilities,
          instructions: of.instructions,
        };
        return reply(res, { jsonrpc: "2.0", id, result });
      }
      if (method === "subscriptions/listen") {
        open(res);
        const meta = { _meta: { "io.modelcontextprotocol/subscriptionId": id } };
        const send = (message: Json) =>
          void res.write(
            `data: ${JSON.stringify({ ...message, params: { ...message["params"], ...meta } })}\n\n`,
          );
        send({
          jsonrpc: "2.0",
          method: "notifications/subscriptions/acknowledged",
          params: { notifications: params["notifications"] },
        });
        streams.add(send);
        return void res.on("close", () => streams.delete(send));
      }
    }
    if (state.hangs && method?.endsWith("/list") === true)
      await new Promise<void>((resolve) => state.held.push(resolve));
    const list = resultOf(method!);
    if (list)
      return reply(res, {
        jsonrpc: "2.0",
        id,
        result: { ...list, resultType: "complete", ttlMs: 0 },
      });
    if (method === "tools/call") {
      const { name, arguments: args = {} } = params as { name: string; arguments?: Json };
      const send = (message: Json) => {
        open(res);
        res.write(`event: message\ndata: ${JSON.stringify(message)}\n\n`);
      };
      const ask = (asked: string, askedParams: Json) =>
        new Promise<Json>((resolve) => {
          const own = randomUUID();
          waiting.set(own, resolve);
          send({ jsonrpc: "2.0", id: own, method: asked, params: askedParams });
        });
      const given = of.call
        ? await of.call({ name, args, params, id, session, res, send, ask })
        : { content: [{ type: "text", text: JSON.stringify(args) }] };
      if (given === undefined) return;
      if (given["error"]) return reply(res, { jsonrpc: "2.0", id, error: given["error"] });
      return reply(res, { jsonrpc: "2.0", id, result: { resultType: "complete", ...given } });
    }
    if (method === "prompts/get")
      return reply(res, {
        jsonrpc: "2.0",
        id,
        result: {
          resultType: "complete",
          messages: [{ role: "user", content: { type: "text", text: `prompt ${params["name"]}` } }],
        },
      });
    if (method === "resources/read")
      return reply(res, {
        jsonrpc: "2.0",
        id,
        result: { resultType: "complete", contents: [{ uri: params["uri"], text: "content" }] },
      });
    return fail(isModern ? 404 : 200, -32_601, "Method not found");
  }
  const server = createServer((req, res) => {
    handle(req, res).catch((error: unknown) => {
      if (!res.headersSent) res.writeHead(500);
      res.end(String(error));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`,
    received,
    sessions,
    get tools() {
      return state.tools;
    },
    set tools(tools) {
      state.tools = tools;
    },
    get hangs() {
      return state.hangs;
    },
    set hangs(hangs) {
      state.hangs = hangs;
      if (!hangs) for (const release of state.held.splice(0)) release();
    },
    emit(method, params = {}) {
      for (const send of streams) send({ jsonrpc: "2.0", method, params });
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
