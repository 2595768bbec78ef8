// A server whose users connect their own accounts, behind a whole gateway: from the error that a client gets, over the page on the
// admin listener, to the call with the user's own token. Tokens are in no log, row, record, response, or command.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { JsonObject } from "tollgate/plugin";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startInProcess, type InProcessGateway } from "../../kit/in-process.ts";
import { FakeAuthorization } from "../../plugins/frontends/mcp/fake-authorization.ts";

const ADMIN = "owner-token-".padEnd(40, "0123456789");
const VIEWER = "viewer-token-".padEnd(40, "0123456789");
const MODERN = "2026-07-28";

async function readText(req: IncomingMessage): Promise<string> {
  const parts: Buffer[] = [];
  for await (const part of req) parts.push(part as Buffer);
  return Buffer.concat(parts).toString();
}

/** An MCP server with an authorization server at the same origin. */
async function startServer() {
  let authorization: FakeAuthorization;
  const seen: string[] = [];
  const server = createServer((req, res) => {
    void (async () => {
      const url = `http://${req.headers.host}${req.url}`;
      const body = await readText(req);
      if (req.url !== "/mcp") {
        const answer = await authorization.fetch(url, {
          method: req.method!,
          headers: req.headers as Record<string, string>,
          body,
        });
        res.writeHead(answer.status, { "content-type": "application/json" });
        return res.end(await answer.text());
      }
      const token = req.headers.authorization?.replace("Bearer ", "") ?? "";
      seen.push(token);
      if (!authorization.isValid(token)) {
        res.writeHead(401, { "www-authenticate": `Bearer error="invalid_token", scope="read"` });
        return res.end();
      }
      const { id, method, params } = JSON.parse(body) as {
        id?: number;
        method: string;
        params: { name?: string };
      };
      const results: Record<string, object> = {
        initialize: {
          protocolVersion: "2025-06-18",
          capabilities: { tools: {}, prompts: {}, resources: {} },
          serverInfo: { name: "tracker", version: "1" },
        },
        "tools/list": { tools: [{ name: "whoami", inputSchema: { type: "object" } }] },
        "prompts/list": { prompts: [{ name: "greet" }] },
        "resources/list": { resources: [] },
        "tools/call": { content: [{ type: "text", text: "an issue" }] },
        "prompts/get": { messages: [] },
        "resources/read": { contents: [] },
      };
      if (id === undefined) return res.writeHead(202).end();
      res.writeHead(200, { "content-type": "application/json" });
      const result = results[method];
      return res.end(
        JSON.stringify({
          jsonrpc: "2.0",
          id,
          ...(result
            ? { result }
            : { error: { code: -32_601, message: `no ${method} ${params?.name}` } }),
        }),
      );
    })();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  authorization = new FakeAuthorization(
    {},
    { resource: `${origin}/mcp`, issuer: `${origin}/tenant` },
  );
  return { origin, authorization, seen, close: () => server.close() };
}

describe("a server with accounts of users", () => {
  let upstream: Awaited<ReturnType<typeof startServer>>;
  let gateway: InProcessGateway;
  let admin: string;
  const outputs: string[] = [];

  beforeAll(async () => {
    upstream = await startServer();
    gateway = await startInProcess({
      yaml: `admin:
  port: 0
  tokens:
    owner: { role: owner, token: "\${env:ADMIN}" }
    viewer: { role: viewer, token: "\${env:VIEWER}" }
middleware: [auth]
observers: [{ use: access-log }]
frontends:
  - use: mcp
    with:
      servers:
        tracker: { url: "${upstream.origin}/mcp", auth: { type: user } }
        api: { url: "${upstream.origin}", openapi: { document: ./api.json } }
        open: { url: "${upstream.origin}/mcp", auth: { type: token, token: unknown } }
      connections: { admin_url: "https://admin.example.com" }
      authorization: { resource: "https://gateway.example.com", servers: ["https://login.example.com"] }
providers: { demo: { use: demo } }
`,
      env: { ADMIN, VIEWER },
      files: {
        "api.json": JSON.stringify({
          openapi: "3.1.0",
          paths: { "/ping": { get: { operationId: "ping" } } },
        }),
      },
    });
    admin = ((await gateway.ask("status")) as { adminUrl: string }).adminUrl;
  });
  afterAll(async () => {
    await gateway?.stop();
    upstream?.close();
  });

  /** Sends a request without a session. */
  async function send(
    method: string,
    params: object = {},
    of: { capabilities?: object; key?: string; path?: string } = {},
  ) {
    const name =
      (params as { name?: string; uri?: string }).name ?? (params as { uri?: string }).uri;
    const response = await fetch(`${gateway.url}${of.path ?? "/mcp/tracker"}`, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        accept: "application/json, text/event-stream",
        "mcp-protocol-version": MODERN,
        "mcp-method": method,
        ...(name !== undefined && { "mcp-name": name }),
        ...(of.key !== "" && { authorization: `Bearer ${of.key ?? gateway.key}` }),
      },
      body: JSON.stringify({
        jsonrpc: "2.0",
        id: 1,
        method,
        params: {
          ...params,
          _meta: {
            "io.modelcontextprotocol/protocolVersion": MODERN,
            "io.modelcontextprotocol/clientCapabilities": of.capabilities ?? {},
          },
        },
      }),
    });
    const text = await response.text();
    outputs.push(text);
    return {
      status: response.status,
      headers: response.headers,
      body: (text === "" ? {} : JSON.parse(text)) as { result?: any; error?: any },
    };
  }
  const post = async (name: string, body: object, token = ADMIN) => {
    const response = await fetch(`${admin}/mcp/connect/${name}`, {
      method: "POST",
      headers: { "content-type": "application/json", authorization: `Bearer ${token}` },
      body: JSON.stringify(body),
    });
    const text = await response.text();
    outputs.push(text);
    return { status: response.status, body: JSON.parse(text) as any };
  };
  const ticketIn = (url: string) => new URL(url).hash.slice("#ticket=".length);

  it("tells a client without a key where to get a token", async () => {
    const { status, headers } = await send("tools/list", {}, { key: "" });
    expect(status).toBe(401);
    expect(headers.get("www-authenticate")).toBe(
      'Bearer resource_metadata="https://gateway.example.com/.well-known/oauth-protected-resource/mcp/tracker"',
    );
    expect(
      (await send("tools/list", {}, { key: "wrong" })).headers.get("www-authenticate"),
    ).toContain('error="invalid_token"');
    const metadata = await fetch(`${gateway.url}/.well-known/oauth-protected-resource/mcp/tracker`);
    expect(await metadata.json()).toEqual({
      resource: "https://gateway.example.com/mcp/tracker",
      authorization_servers: ["https://login.example.com"],
      bearer_methods_supported: ["header"],
    });
  });

  it("asks for a connection with a URL, for tools, prompts, and resources alike", async () => {
    for (const [method, params] of [
      ["tools/list", {}],
      ["prompts/list", {}],
      ["resources/list", {}],
      ["tools/call", { name: "whoami", arguments: {} }],
      ["prompts/get", { name: "greet" }],
      ["resources/read", { uri: "a://b" }],
    ] as const) {
      const { body } = await send(method, params);
      expect(body.error, method).toMatchObject({
        code: -32_000,
        data: { elicitations: [{ mode: "url" }] },
      });
      expect(body.error.message).toContain(
        "Connect your account for tracker. Open https://admin.example.com/mcp/connect?server=tracker#ticket=",
      );
    }
    expect(upstream.seen).toEqual([]);
  });

  it("is not missing from the list of all servers", async () => {
    const path = "/mcp";
    const { tools } = (await send("tools/list", {}, { path })).body.result;
    expect(tools.map(({ name }: { name: string }) => name)).toEqual([
      "api__ping",
      "tracker__connect",
    ]);
    for (const name of ["tracker__connect", "tracker__whoami"]) {
      const { error } = (await send("tools/call", { name, arguments: {} }, { path })).body;
      expect(error.message).toContain("Connect your account for tracker. Open https://");
    }
  });

  it("asks a client that can show a URL with a result, connects, and calls with the user's token", async () => {
    const capabilities = { elicitation: { url: {} } };
    const asked = (await send("tools/call", { name: "whoami", arguments: {} }, { capabilities }))
      .body.result;
    expect(asked).toMatchObject({
      resultType: "input_required",
      inputRequests: {
        connect: {
          method: "elicitation/create",
          params: { mode: "url", message: "Connect your account for tracker." },
        },
      },
    });
    const ticket = ticketIn(asked.inputRequests.connect.params.url);

    const callback = await fetch(`${admin}/mcp/connect/callback/tracker?code=c&state=s`);
    expect(callback.status).toBe(200);
    const page = await fetch(`${admin}/mcp/connect`);
    expect(page.status).toBe(200);
    expect(page.headers.get("content-security-policy")).toContain("default-src 'none'");
    expect((await post("list", { ticket }, "none")).status).toBe(401);
    expect((await post("list", { ticket }, VIEWER)).body.error.data.code).toBe(
      "connect_other_person",
    );
    expect((await post("list", { ticket: `x${ticket}` })).body.error.data.code).toBe(
      "connect_link_expired",
    );
    expect((await post("list", { ticket })).body.servers).toEqual([
      { server: "tracker", state: "none" },
    ]);
    const started = await post("start", { ticket, server: "tracker" });
    expect(started.status).toBe(200);
    const back = upstream.authorization.authorize(started.body.url);
    expect((await post("finish", back, VIEWER)).body.error.data.code).toBe("connect_other_person");
    expect(await post("finish", back)).toEqual({ status: 200, body: { server: "tracker" } });
    expect((await post("list", { ticket })).body.servers).toEqual([
      { server: "tracker", state: "connected" },
    ]);

    const retried = await send(
      "tools/call",
      {
        name: "whoami",
        arguments: {},
        inputResponses: { connect: { action: "accept" } },
        requestState: asked.requestState,
      },
      { capabilities },
    );
    expect(retried.body.result).toMatchObject({
      resultType: "complete",
      content: [{ text: "an issue" }],
    });
    expect((await send("tools/list")).body.result.tools).toMatchObject([{ name: "whoami" }]);
    expect(
      upstream.seen.every((token) => token === "unknown" || upstream.authorization.isValid(token)),
    ).toBe(true);
  });

  it("is tested and connected by commands", async () => {
    const run = async (name: string, input: JsonObject = {}) => {
      const answer = await gateway.ask(`frontends.mcp/${name}`, input);
      outputs.push(JSON.stringify(answer));
      return answer as any;
    };
    expect(await run("servers")).toMatchObject([
      { name: "tracker", type: "mcp", auth: "user" },
      { name: "api", type: "openapi" },
      { name: "open", auth: "token" },
    ]);
    const [tracker, api, open] = await run("test");
    expect(tracker).toMatchObject({
      name: "tracker",
      ok: false,
      problem: expect.stringContaining("Connect your account"),
    });
    expect(api).toMatchObject({ name: "api", ok: true, tools: [{ name: "ping" }] });
    expect(open).toMatchObject({ name: "open", ok: false });
    const id = gateway.key.slice("tg_".length, "tg_".length + 10);
    expect(await run("test", { server: "tracker", client: id })).toMatchObject([
      { ok: true, tools: [{ name: "whoami" }] },
    ]);
    expect(await run("connect", { client: id })).toMatchObject({
      connections: [{ server: "tracker", state: "connected" }],
    });
    await expect(run("test", { server: "trackr" })).rejects.toThrow('Did you mean "tracker"?');
  });

  it("is refreshed when the server rejects the token, and erased with the key", async () => {
    const [grant] = upstream.authorization.grants;
    grant!.accessTokens.clear();
    expect(
      (await send("tools/call", { name: "whoami", arguments: {} })).body.result.content,
    ).toEqual([{ type: "text", text: "an issue" }]);
    expect(upstream.authorization.refreshes).toBe(1);
    const id = gateway.key.slice("tg_".length, "tg_".length + 10);
    await gateway.ask("frontends.mcp/connect", { client: id, disconnect: "tracker" });
    expect(
      (await send("tools/call", { name: "whoami", arguments: {} })).body.error.message,
    ).toContain("Connect your account");
  });

  it("discloses no token", async () => {
    const files = readdirSync(gateway.stateDir, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => readFileSync(join(entry.parentPath, entry.name), "latin1"));
    const seen = [...outputs, ...files, gateway.output()].join("\n");
    expect(upstream.authorization.secrets.length).toBeGreaterThan(4);
    for (const secret of upstream.authorization.secrets) expect(seen).not.toContain(secret);
  });
});
