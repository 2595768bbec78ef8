// Frontend for the Model Context Protocol: MCP servers behind one address, with tools per key and a
// ledger row for each call.
import { defineFrontend } from "tollgate/plugin";
import { acceptOption, extractCredential } from "./client-credential.ts";
import { faultError, McpEndpoint } from "./mcp/endpoint.ts";
import { MountedServer } from "./mcp/mounted-server.ts";
import { findProblems } from "./mcp/option-problems.ts";
import { MCP_OPTIONS } from "./mcp/options.ts";
import { createOpenApiServer } from "./mcp/openapi-server.ts";
import { RemoteServer } from "./mcp/remote/remote-server.ts";
import { Scopes } from "./mcp/scopes.ts";
import { createCredentialResolver } from "./mcp/server-credential.ts";

const SECOND_MS = 1_000;

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
    const servers = new Map<string, MountedServer>();
    for (const [
      name,
      { url, revision, auth, openapi, timeout_s: idle, ...rules },
    ] of Object.entries(options.servers)) {
      const idleMs = idle * SECOND_MS;
      const server = openapi
        ? await createOpenApiServer(ctx, { name, url, openapi, timeoutMs: idleMs })
        : new RemoteServer(name, { url, revision, idleMs }, ctx);
      const credentials = createCredentialResolver(auth);
      const listTtlMs = options.list_ttl_s * SECOND_MS;
      servers.set(name, new MountedServer({ server, rules, credentials, listTtlMs, ctx }));
    }
    const sets = new Map(Object.entries(options.sets ?? {}));
    const endpoint = new McpEndpoint(ctx, new Scopes(servers, sets));
    const path = ["/mcp", "/mcp/:name"];
    return {
      extractCredential: (headers) => extractCredential(headers, options.accept),
      encodeFault: (fault) => ({ body: { jsonrpc: "2.0", error: faultError(fault) } }),
      routes: [
        {
          method: "POST",
          path,
          body: "bytes",
          handle: (x, body) => endpoint.handleMessage(x, body),
        },
        { method: "GET", path, handle: (x) => endpoint.handleStream(x) },
        { method: "DELETE", path, handle: (x) => endpoint.handleDelete(x) },
      ],
    };
  },
});
