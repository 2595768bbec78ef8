// Reads the MCP servers of the gateway in a request of the Messages API, and converts blocks of
// earlier calls to the blocks that the model has seen.
import { fail, type Body, type Json, type JsonObject, type RequestHead } from "tollgate/plugin";
import { isObject } from "../../mcp/json-rpc.ts";
import {
  functionNameOf,
  type GatewayTools,
  type RequestedServer,
  type ToolFilter,
} from "../gateway-tools.ts";

/** Prefix of the IDs of calls that the gateway makes. The rest is the model's ID. */
export const USE_PREFIX = "mcptoolu_gw_";

export interface MessagesServer extends RequestedServer {
  /** Cache breakpoint after its tools. */
  readonly cacheControl: Json | undefined;
}

/** The parts of a request that concern servers of the gateway. */
export interface ToolRequest {
  readonly servers: readonly MessagesServer[];
  /** All other tools, with the places of the servers. */
  readonly tools: readonly (JsonObject | MessagesServer)[];
  /** Servers that the provider calls. */
  readonly remoteServers: readonly Json[];
  readonly messages: readonly Json[];
}

/** Returns undefined if the request does not concern servers of the gateway. */
export function readToolRequest(
  x: RequestHead,
  body: Body,
  gateway: GatewayTools,
): ToolRequest | undefined {
  const declared = listOf(body["mcp_servers"]);
  const messages = listOf(body["messages"]);
  const paths = declared.map((one) => (isObject(one) ? gateway.pathOf(x, one["url"]) : undefined));
  if (paths.every((path) => path === undefined) && !messages.some(hasOwnBlocks)) return undefined;
  const tools = listOf(body["tools"]) as readonly JsonObject[];
  const toolsets = new Map(
    tools.filter(isToolset).map((tool) => [tool["mcp_server_name"], tool] as const),
  );
  const servers = new Map<string, MessagesServer>();
  for (const [at, path] of paths.entries()) {
    if (path === undefined) continue;
    const server = readServer(declared[at] as JsonObject, path, `mcp_servers[${at}]`, toolsets);
    if (servers.has(server.name))
      fail("invalid", "Two MCP servers have the same name.", { param: `mcp_servers[${at}].name` });
    servers.set(server.name, server);
  }
  const placed = new Set<MessagesServer>();
  const expanded = tools.map((tool) => {
    const server = isToolset(tool) ? servers.get(String(tool["mcp_server_name"])) : undefined;
    if (!server) return tool;
    if (placed.has(server))
      fail("invalid", `Two toolsets name the MCP server ${server.name}.`, { param: "tools" });
    placed.add(server);
    return server;
  });
  const unplaced = [...servers.values()].filter((server) => !placed.has(server));
  return {
    servers: [...servers.values()],
    tools: [...expanded, ...unplaced],
    remoteServers: declared.filter((_, at) => paths[at] === undefined),
    messages: convertMessages(messages, new Set(servers.keys())),
  };
}

const listOf = (value: unknown): readonly Json[] =>
  Array.isArray(value) ? (value as readonly Json[]) : [];

const isToolset = (tool: JsonObject): boolean => tool["type"] === "mcp_toolset";

function readServer(
  server: JsonObject,
  path: string,
  param: string,
  toolsets: ReadonlyMap<Json | undefined, JsonObject>,
): MessagesServer {
  const { name, tool_configuration: old } = server;
  if (typeof name !== "string" || name === "" || name.length > 256)
    return fail("invalid", "Missing name of the MCP server.", { param: `${param}.name` });
  const toolset = toolsets.get(name);
  return {
    name,
    path,
    param,
    isAllowed: toolset ? readToolset(toolset) : readConfiguration(old),
    cacheControl: toolset?.["cache_control"],
  };
}

function readToolset({ default_config: usual, configs, tools }: JsonObject): ToolFilter {
  const isEnabled = (config: unknown): boolean | undefined =>
    isObject(config) && typeof config["enabled"] === "boolean" ? config["enabled"] : undefined;
  const byDefault = isEnabled(usual) ?? true;
  const pinned = Array.isArray(tools)
    ? new Set((tools as readonly Json[]).map((one) => (isObject(one) ? one["name"] : undefined)))
    : undefined;
  return ({ name }) => {
    const own = isObject(configs) && Object.hasOwn(configs, name) ? configs[name] : undefined;
    return (isEnabled(own) ?? byDefault) && (pinned?.has(name) ?? true);
  };
}

/** Reads the configuration of the first beta, in which the server selects its tools. */
function readConfiguration(configuration: Json | undefined): ToolFilter {
  const { enabled, allowed_tools: allowed } = isObject(configuration) ? configuration : {};
  if (enabled === false) return () => false;
  if (!Array.isArray(allowed)) return () => true;
  const names = new Set(allowed as readonly Json[]);
  return ({ name }) => names.has(name);
}

const isOwnUse = (block: JsonObject, names: ReadonlySet<string>): boolean =>
  block["type"] === "mcp_tool_use" &&
  (String(block["id"]).startsWith(USE_PREFIX) || names.has(String(block["server_name"])));

const hasOwnBlocks = (message: Json): boolean =>
  isObject(message) &&
  listOf(message["content"]).some(
    (block) =>
      isObject(block) &&
      block["type"] === "mcp_tool_use" &&
      String(block["id"]).startsWith(USE_PREFIX),
  );

/** Returns the model's ID of a call. */
const modelId = (id: Json | undefined): string => String(id).replace(USE_PREFIX, "");

function convertMessages(messages: readonly Json[], names: ReadonlySet<string>): readonly Json[] {
  const converted: Json[] = [];
  let results: JsonObject[] = [];
  const flush = () => {
    if (results.length > 0) converted.push({ role: "user", content: results });
    results = [];
  };
  for (const message of messages) {
    if (!isObject(message)) {
      converted.push(message);
      continue;
    }
    const { role, content } = message;
    if (role === "user" && results.length > 0) {
      const own = Array.isArray(content)
        ? (content as readonly Json[])
        : [{ type: "text", text: content! }];
      converted.push({ ...message, content: [...results, ...own] });
      results = [];
      continue;
    }
    flush();
    const uses = new Set(
      listOf(content).flatMap((block) =>
        isObject(block) && isOwnUse(block, names) ? [block["id"]] : [],
      ),
    );
    const isAffected = listOf(content).some((block) => isObject(block) && isListing(block, names));
    if (role !== "assistant" || (uses.size === 0 && !isAffected)) {
      converted.push(message);
      continue;
    }
    let blocks: Json[] = [];
    const endTurn = () => {
      if (blocks.length > 0) converted.push({ ...message, content: blocks });
      blocks = [];
    };
    for (const block of listOf(content)) {
      if (!isObject(block) || isListing(block, names)) {
        if (!isObject(block)) blocks.push(block);
        continue;
      }
      if (block["type"] === "mcp_tool_result" && uses.has(block["tool_use_id"])) {
        results.push(toToolResult(block));
        continue;
      }
      if (results.length > 0) {
        endTurn();
        flush();
      }
      blocks.push(uses.has(block["id"]) ? toToolUse(block) : block);
    }
    endTurn();
  }
  flush();
  return converted;
}

const isListing = (block: JsonObject, names: ReadonlySet<string>): boolean =>
  block["type"] === "mcp_tool_listing" && names.has(String(block["mcp_server_name"]));

function toToolUse({
  id,
  name,
  server_name: server,
  input,
  cache_control,
}: JsonObject): JsonObject {
  return {
    type: "tool_use",
    id: modelId(id),
    name: functionNameOf(String(server), String(name)),
    input: input ?? {},
    ...(cache_control != null && { cache_control }),
  };
}

function toToolResult({ tool_use_id, content, is_error, cache_control }: JsonObject): JsonObject {
  // Providers reject an empty text.
  const isEmpty = Array.isArray(content)
    ? (content as readonly Json[]).every((part) => isObject(part) && part["text"] === "")
    : content == null;
  return {
    type: "tool_result",
    tool_use_id: modelId(tool_use_id),
    ...(!isEmpty && { content }),
    ...(is_error === true && { is_error }),
    ...(cache_control != null && { cache_control }),
  };
}
