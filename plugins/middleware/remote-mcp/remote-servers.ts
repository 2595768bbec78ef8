// Finds the MCP servers that a request names for its provider, in the formats of all protocols.
import type { Body } from "tollgate/plugin";

/** An MCP server that the provider would connect to. */
export interface RemoteServer {
  /** Path of the server in the body, such as "tools[0]". */
  readonly path: string;
  /**
   * Normalized URL without query and fragment, `connector:<id>`, or `tunnel:<id>`. Undefined if it
   * cannot be determined.
   */
  readonly address: string | undefined;
}

type Members = Readonly<Record<string, unknown>>;

const isMembers = (value: unknown): value is Members =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const listOf = (value: unknown): readonly unknown[] =>
  Array.isArray(value) ? value : value == null ? [] : [value];

/** Fields with a list of servers: Anthropic's and Gemini's. */
const SERVER_FIELDS = ["mcp_servers", "mcpServers"] as const;

/**
 * Returns the servers of a body, of its input items, which may contain tools, and of the session that
 * the body describes.
 */
export function findRemoteServers(body: Body): readonly RemoteServer[] {
  const found: RemoteServer[] = [];
  collect(body, "", found);
  if (isMembers(body["session"])) collect(body["session"], "session.", found);
  return found;
}

function collect(body: Members, start: string, found: RemoteServer[]): void {
  const { input } = body;
  if (Array.isArray(input))
    for (const [at, item] of input.entries())
      if (isMembers(item)) collectTools(item, `${start}input[${at}].`, found);
  collectTools(body, start, found);
  collectServers(body, start, found);
}

/** Collects the servers of tools, and of the tools in a namespace. */
function collectTools(holder: Members, start: string, found: RemoteServer[]): void {
  const open = [{ holder, start }];
  for (const { holder: one, start: prefix } of open)
    for (const [at, tool] of listOf(one["tools"]).entries()) {
      if (!isMembers(tool)) continue;
      const path = `${prefix}tools[${at}]`;
      if (tool["type"] === "mcp") found.push({ path, address: addressOf(tool) });
      else {
        collectServers(tool, `${path}.`, found);
        open.push({ holder: tool, start: `${path}.` });
      }
    }
}

function collectServers(holder: Members, start: string, found: RemoteServer[]): void {
  for (const field of SERVER_FIELDS)
    for (const [at, server] of listOf(holder[field]).entries())
      found.push({
        path: `${start}${field}[${at}]`,
        address: isMembers(server) ? addressOf(server) : undefined,
      });
}

/** Members that contain the transport of a server in Gemini's protocol. */
const TRANSPORTS = ["streamableHttpTransport", "streamable_http_transport"] as const;

function addressOf(server: Members): string | undefined {
  const transport = TRANSPORTS.map((name) => server[name]).find(isMembers);
  const addresses = [server["server_url"], server["url"], transport?.["url"]].filter(
    (one) => one != null,
  );
  const { connector_id: connector, tunnel_id: tunnel } = server;
  // A server that is named in several ways could be another one for the provider than for this check.
  if (addresses.length + [connector, tunnel].filter((one) => one != null).length !== 1)
    return undefined;
  if (typeof connector === "string") return `connector:${connector}`;
  if (typeof tunnel === "string") return `tunnel:${tunnel}`;
  const [address] = addresses;
  return typeof address === "string" ? normalize(address) : undefined;
}

/** Returns undefined for a URL with a user name, because readers could take it for the host. */
function normalize(address: string): string | undefined {
  const url = URL.parse(address);
  if (!url || url.username !== "" || url.password !== "") return undefined;
  return `${url.protocol}//${url.host}${url.pathname}`;
}
