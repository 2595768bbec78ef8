// Commands for operators: the list of servers, a test of each server, and the connections of a client.
// A test calls a server with the credential that a client's request would use.
import {
  fail,
  getFault,
  nearest,
  type Json,
  type JsonObject,
  type PluginCommand,
  type RequestHead,
} from "tollgate/plugin";
import type { AuthenticatedServer } from "../auth/server-auth.ts";
import type { UserConnections } from "../auth/user-connections.ts";
import type { MountedServer } from "../mounted-server.ts";

/** A server of the options, with what is mounted for it. */
export interface ServedServer extends AuthenticatedServer {
  readonly mounted: MountedServer;
  readonly openapi?: object | undefined;
}

const CLIENT = {
  type: "string",
  minLength: 1,
  maxLength: 512,
  description: "Client: ID of a key, or jwt:<issuer>:<subject>",
} as const;

/** Returns the commands of the frontend. */
export function mcpCommands(
  servers: ReadonlyMap<string, ServedServer>,
  connections: UserConnections | undefined,
): Readonly<Record<string, PluginCommand>> {
  const find = (name: string): ServedServer =>
    servers.get(name) ?? failUnknown(name, servers.keys());
  return {
    servers: {
      summary: "List the servers, without calling them",
      role: "viewer",
      writes: false,
      run: async () => [...servers.values()].map(describeServer) as Json,
    },
    test: {
      summary: "Call the servers, and list their tools",
      role: "viewer",
      writes: false,
      input: {
        type: "object",
        additionalProperties: false,
        properties: {
          server: { type: "string", description: "Name of a server. Default: all" },
          client: CLIENT,
        },
      },
      async run({ server, client }) {
        const tested = server === undefined ? [...servers.values()] : [find(String(server))];
        const x = requestOf(client === undefined ? undefined : String(client));
        return (await Promise.all(tested.map((each) => testServer(each, x)))) as Json;
      },
    },
    connect: {
      summary: "Create a link with which a client's user connects accounts",
      role: "operator",
      input: {
        type: "object",
        additionalProperties: false,
        required: ["client"],
        properties: {
          client: CLIENT,
          disconnect: { type: "string", description: "Server whose connection is deleted" },
        },
      },
      async run({ client, disconnect }) {
        if (!connections)
          return fail("invalid", "No server has connections of users. Set auth.type to user.", {
            code: "unknown_mcp_server",
          });
        const id = String(client);
        if (disconnect !== undefined) {
          find(String(disconnect));
          await connections.disconnect(id, String(disconnect));
        }
        const list = await connections.list(id);
        const url = connections.ticketUrl({ id, account: undefined });
        return { url, connections: list.map((each) => ({ ...each })) };
      },
    },
  };
}

const describeServer = ({ name, url, auth, openapi, mounted }: ServedServer): JsonObject => {
  const { prices, tools, zero_retention: zeroRetention } = mounted.rules;
  return {
    name,
    url,
    type: openapi === undefined ? "mcp" : "openapi",
    auth: auth?.type ?? "none",
    zeroRetention,
    prices: { ...prices },
    pinned: Object.keys(tools?.pin ?? {}).length,
  };
};

async function testServer({ name, mounted }: ServedServer, x: RequestHead): Promise<JsonObject> {
  const start = performance.now();
  const elapsed = () => Math.round(performance.now() - start);
  try {
    const { revision } = await mounted.describe(x);
    const { entries } = await mounted.list("tools", x, { capabilities: {} });
    const tools = [...entries.values()].map(({ key, item, hash }) => ({
      name: key,
      description: String(item["description"] ?? "").slice(0, 200),
      hash,
      ...priceOf(mounted, key),
    }));
    return { name, ok: true, ms: elapsed(), ...(revision != null && { revision }), tools };
  } catch (error) {
    const problem = getFault(error)?.message ?? (error as Error).message;
    return { name, ok: false, ms: elapsed(), problem };
  }
}

function priceOf(mounted: MountedServer, tool: string): { priceUsd?: string } {
  const { prices = {} } = mounted.rules;
  const usd = Object.hasOwn(prices, tool) ? prices[tool] : prices["*"];
  return usd === undefined ? {} : { priceUsd: usd };
}

/** Returns the part of a request that the credential of a server depends on. */
const requestOf = (client = "test"): RequestHead =>
  ({
    path: "/mcp",
    identity: { id: client },
    signal: AbortSignal.timeout(30_000),
  }) as Partial<RequestHead> as RequestHead;

function failUnknown(name: string, known: Iterable<string>): never {
  const near = nearest(name, known);
  return fail(
    "not_found",
    `No server is named "${name}".${near === undefined ? "" : ` Did you mean "${near}"?`}`,
    { code: "unknown_mcp_server" },
  );
}
