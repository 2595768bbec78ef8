// A server of tools with almost no cost, in two generations of MCP: at `/mcp` without sessions and
// with JSON, and at `/mcp-session` with sessions and with a stream of events for each result, as the
// official SDKs send it.
import type { Socket } from "node:net";

const TEXT = "the quick brown fox jumps over the lazy dog and keeps on running ".repeat(8);
const CAPABILITIES = { tools: {} };
const INFO = { name: "mock", version: "1" };
const TOOL = {
  name: "search",
  description: "Searches the documents.",
  inputSchema: { type: "object", properties: { query: { type: "string" } } },
};

const RESULTS: Readonly<Record<string, object>> = {
  "server/discover": {
    resultType: "complete",
    supportedVersions: ["2026-07-28"],
    capabilities: CAPABILITIES,
  },
  initialize: { protocolVersion: "2025-11-25", capabilities: CAPABILITIES, serverInfo: INFO },
  "tools/list": { resultType: "complete", tools: [TOOL] },
  "tools/call": { resultType: "complete", content: [{ type: "text", text: TEXT }] },
};
const TEXTS = new Map(
  Object.entries(RESULTS).map(([name, result]) => [name, JSON.stringify(result)]),
);

export const isToolServer = (head: string): boolean => /^post \/mcp[ -]/.test(head);

/** Answers one message. */
export function answerTool(socket: Socket, head: string, body: string): void {
  const hasSessions = head.startsWith("post /mcp-session");
  const [, method = ""] = /"method":"([^"]+)"/.exec(body) ?? [];
  const [, id] = /"id":("[^"]*"|\d+)/.exec(body) ?? [];
  if (id === undefined) return send(socket, "202 Accepted", "", "");
  // A server with sessions does not know the method of the newer generation.
  if (hasSessions && method === "server/discover")
    return send(socket, "400 Bad Request", "text/plain", "no session");
  const message = `{"jsonrpc":"2.0","id":${id},"result":${TEXTS.get(method) ?? "{}"}}`;
  if (!hasSessions || method === "initialize")
    return send(socket, "200 OK", "application/json", message, "mcp-session-id: mock\r\n");
  const event = `event: message\ndata: ${message}\n\n`;
  socket.write(
    `HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n${event.length.toString(16)}\r\n${event}\r\n0\r\n\r\n`,
  );
}

function send(socket: Socket, status: string, type: string, body: string, more = ""): void {
  const content = type === "" ? "" : `content-type: ${type}\r\n`;
  socket.write(
    `HTTP/1.1 ${status}\r\n${content}${more}content-length: ${body.length}\r\n\r\n${body}`,
  );
}
