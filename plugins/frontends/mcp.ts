// Frontend for the Model Context Protocol: MCP servers behind one address, with tools per key and a
// ledger row for each call.
import { defineFrontend, type Context } from "tollgate/plugin";
import { acceptOption, extractCredential } from "./client-credential.ts";
import { mcpCommands } from "./mcp/admin/commands.ts";
import { connectRoutes } from "./mcp/admin/connect-routes.ts";
import { findProblems } from "./mcp/admin/option-problems.ts";
import { CredentialVault, requireJobs, vaultKeys } from "./mcp/auth/credential-vault.ts";
import { ResourceServer } from "./mcp/auth/resource-server.ts";
import {
  connectableServers,
  createServerAuth,
  type ServerAuthOptions,
} from "./mcp/auth/server-auth.ts";
import { SubjectTokens } from "./mcp/auth/shared-credentials.ts";
import { UserConnections } from "./mcp/auth/user-connections.ts";
import { faultError, McpEndpoint } from "./mcp/endpoint.ts";
import { MountedServer, type ServerRules } from "./mcp/mounted-server.ts";
import { createOpenApiServer, type OpenApiOptions } from "./mcp/openapi/server.ts";
import { MCP_OPTIONS } from "./mcp/options.ts";
import { RemoteServer } from "./mcp/remote/remote-server.ts";
import type { Revision } from "./mcp/revisions.ts";
import { Scopes } from "./mcp/scopes.ts";

const SECOND_MS = 1_000;
/** Paths of servers and sets. Whether one exists is not disclosed to clients without a key. */
const MCP_PATH = /^\/mcp(?:\/[a-z][a-z0-9-]{0,30})?$/;

interface ServerOptions extends ServerRules {
  readonly url: string;
  readonly revision?: Revision;
  readonly auth?: ServerAuthOptions;
  readonly openapi?: OpenApiOptions;
  readonly timeout_s: number;
}

export default defineFrontend({
  api: 1,
  name: "mcp",
  summary: "Serve MCP servers with tools per key",
  stability: "experimental",
  options: {
    ...MCP_OPTIONS,
    properties: { ...MCP_OPTIONS.properties, accept: acceptOption("bearer", "x-api-key") },
  },
  needs: {
    files: ({ servers }) =>
      Object.values(servers).flatMap(({ openapi }) => openapi?.document ?? []),
  },
  check: findProblems,
  async setup(options, ctx) {
    const configured = Object.entries(options.servers).map(
      ([name, server]) => [name, server as ServerOptions] as const,
    );
    const connections = createConnections(ctx, options.connections, configured);
    const subjects = new SubjectTokens();
    const listTtlMs = options.list_ttl_s * SECOND_MS;
    const served = await Promise.all(
      configured.map(async ([name, server]) => {
        const credentials = createServerAuth(ctx, { name, ...server }, { connections, subjects });
        const tools = await createServer(ctx, name, server);
        const mounted = new MountedServer({
          server: tools,
          rules: server,
          credentials,
          listTtlMs,
          listTimeoutMs: options.list_timeout_s * SECOND_MS,
          ctx,
        });
        return { ...server, name, mounted };
      }),
    );
    const resourceServer = options.authorization && new ResourceServer(options.authorization);
    const scopes = new Scopes(
      new Map(served.map(({ name, mounted }) => [name, mounted])),
      new Map(Object.entries(options.sets ?? {})),
      (identity) => resourceServer?.toolsOf({ identity }),
    );
    const endpoint = new McpEndpoint(ctx, scopes);
    const path = ["/mcp", "/mcp/:name"];
    const isExchanged = configured.some(([, { auth }]) => auth?.type === "token_exchange");
    return {
      commands: mcpCommands(new Map(served.map((each) => [each.name, each])), connections),
      extractCredential(headers) {
        const credential = extractCredential(headers, options.accept);
        if (isExchanged) subjects.remember(credential);
        return credential;
      },
      encodeFault: (fault, x) => ({
        body: { jsonrpc: "2.0", error: faultError(fault) },
        headers: resourceServer?.challenge(fault, x),
      }),
      routes: [
        {
          method: "POST",
          path,
          body: "bytes",
          handle(x, body) {
            resourceServer?.assertAudience(x);
            return endpoint.handleMessage(x, body);
          },
        },
        {
          method: "GET",
          path,
          handle(x) {
            resourceServer?.assertAudience(x);
            return endpoint.handleStream(x);
          },
        },
        { method: "DELETE", path, handle: (x) => endpoint.handleDelete(x) },
        ...(resourceServer?.routes((resource) => MCP_PATH.test(resource)) ?? []),
        ...(connections ? connectRoutes(connections) : []),
      ],
    };
  },
});

/** Returns the connections of users. Undefined if no server has them. */
function createConnections(
  ctx: Context,
  options: { admin_url: string; encryption_keys?: string[] } | undefined,
  configured: readonly (readonly [name: string, options: ServerOptions])[],
): UserConnections | undefined {
  const servers = connectableServers(configured.map(([name, of]) => ({ ...of, name })));
  if (!options || servers.length === 0) return undefined;
  const keys = vaultKeys(ctx, options.encryption_keys ?? []);
  return new UserConnections({
    ctx,
    vault: new CredentialVault(requireJobs(ctx), keys, ctx.id),
    keys: [ctx.deriveSecret("links of connections")],
    adminUrl: options.admin_url,
    servers,
  });
}

const createServer = (ctx: Context, name: string, server: ServerOptions) => {
  const { url, revision, openapi, timeout_s: seconds } = server;
  const timeoutMs = seconds * SECOND_MS;
  return openapi
    ? createOpenApiServer(ctx, { name, url, openapi, timeoutMs })
    : new RemoteServer({ name, url: new URL(url), revision, idleMs: timeoutMs }, ctx);
};
