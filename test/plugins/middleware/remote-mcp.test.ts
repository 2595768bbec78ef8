// The middleware `remote-mcp`: which MCP servers clients may let a provider call.
import * as fc from "fast-check";
import { afterAll, beforeAll, beforeEach, describe, expect, it, test } from "vitest";
import { say, scriptedModel } from "tollgate/testing";
import { digestKey, mintKey } from "../../../src/lib/api-key.ts";
import { findRemoteServers } from "../../../plugins/middleware/remote-mcp/remote-servers.ts";
import { startInProcessWithUpstream, type InProcessWithUpstream } from "../../kit/in-process.ts";

const [any, agent] = [mintKey().secret, mintKey().secret];
const SECRET = "secret-of-the-server";
let at: InProcessWithUpstream;
beforeAll(async () => {
  at = await startInProcessWithUpstream(
    scriptedModel(say("Hello")),
    (url) => `
frontends: [responses, messages]
middleware:
  - use: auth
    with: { keys: [{ id: any, digest: ${digestKey(any)} }, { id: agent, digest: ${digestKey(agent)} }] }
  - use: remote-mcp
    with:
      allow:
        - servers: ["https://mcp.example.com/*", "connector:gmail"]
        - { servers: ["https://other.example.com/mcp"], keys: [agent] }
providers:
  openai: { use: openai, with: { api_key: k, base_url: "${url}/v1" } }
  claude: { use: anthropic, with: { api_key: k, base_url: "${url}" } }
`,
  );
});
afterAll(() => at?.[Symbol.asyncDispose]());
beforeEach(() => at.up.reset());

async function post(path: string, body: object, key = any) {
  const response = await fetch(`${at.gateway.url}${path}`, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      ...(path === "/v1/messages" ? { "x-api-key": key } : { authorization: `Bearer ${key}` }),
    },
    body: JSON.stringify(body),
  });
  return { status: response.status, text: await response.text() };
}
const respond = (tool: object, key?: string) =>
  post(
    "/v1/responses",
    { model: "openai/gpt-4.1", input: "x", tools: [{ type: "mcp", server_label: "a", ...tool }] },
    key,
  );
const sent = () => at.up.requests.filter(({ method }) => method === "POST");

describe("a server that a client names", () => {
  it("reaches the provider unchanged if a rule allows it", async () => {
    const tool = {
      type: "mcp",
      server_label: "a",
      server_url: "https://mcp.example.com/mcp?team=1",
      authorization: SECRET,
      headers: { "x-own": SECRET },
      undocumented: { deep: true },
    };
    expect((await respond(tool)).status).toBe(200);
    expect((await respond({ connector_id: "gmail" })).status).toBe(200);
    expect((await respond({ server_url: "https://other.example.com/mcp" }, agent)).status).toBe(
      200,
    );
    const server = { type: "url", url: "https://mcp.example.com/mcp", name: "a" };
    const body = {
      model: "claude/claude-opus-5",
      max_tokens: 100,
      messages: [{ role: "user", content: "x" }],
      mcp_servers: [{ ...server, authorization_token: SECRET }],
      tools: [{ type: "mcp_toolset", mcp_server_name: "a", undocumented: 1 }],
    };
    expect((await post("/v1/messages", body)).status).toBe(200);
    const bodies = sent().map((one) => one.json() as typeof body);
    expect(bodies[0]!.tools).toEqual([tool]);
    expect(bodies[3]).toMatchObject({ mcp_servers: body.mcp_servers, tools: body.tools });
    expect(at.gateway.output()).not.toContain(SECRET);
  });

  it("is refused otherwise, and neither its URL nor its credential is logged", async () => {
    const refused = [
      { server_url: "https://evil.example.com/mcp", authorization: SECRET },
      { server_url: "https://other.example.com/mcp" },
      { server_url: "https://mcp.example.com@evil.example.com/mcp" },
      { server_url: "https://mcp.example.com:444/mcp" },
      { server_url: "http://mcp.example.com/mcp" },
      { server_url: "https://mcp.example.com/mcp", url: "https://evil.example.com" },
      { connector_id: "dropbox" },
      { tunnel_id: "gmail" },
      {},
    ];
    for (const tool of refused) {
      const { status, text } = await respond(tool);
      expect([tool, status, JSON.parse(text)]).toMatchObject([
        tool,
        403,
        { error: { code: "mcp_server_not_allowed", param: "tools[0]" } },
      ]);
    }
    const { status, text } = await post("/v1/messages", {
      model: "claude/claude-opus-5",
      max_tokens: 100,
      messages: [{ role: "user", content: "x" }],
      mcp_servers: [{ type: "url", url: "https://evil.example.com/mcp", name: "a" }],
    });
    expect([status, text]).toEqual([403, expect.stringContaining("mcp_servers[0] names")]);
    expect(sent()).toEqual([]);
    expect(at.gateway.output()).not.toContain(SECRET);
    expect(at.gateway.output()).not.toContain("evil.example.com");
  });
});

test("law: every server of a body is found, wherever it is", () => {
  const url = fc
    .tuple(fc.constantFrom("a.example.com", "b.test:8443"), fc.nat(99))
    .map(([host, at]) => `https://${host}/mcp/${at}`);
  const other = fc.constantFrom({ type: "function", name: "f" }, { type: "web_search" });
  fc.assert(
    fc.property(
      fc.array(fc.oneof(url, other), { maxLength: 6 }),
      fc.boolean(),
      (given, isNested) => {
        const tools = given.map((one) =>
          typeof one === "string" ? { type: "mcp", server_label: "a", server_url: one } : one,
        );
        const urls = given.filter((one) => typeof one === "string");
        const found = (body: object) =>
          findRemoteServers((isNested ? { session: body } : body) as never).map(
            ({ address }) => address,
          );
        expect(found({ tools })).toEqual(urls);
        expect(found({ mcp_servers: urls.map((one) => ({ type: "url", url: one })) })).toEqual(
          urls,
        );
        const gemini = urls.map((one) => ({ streamableHttpTransport: { url: one } }));
        expect(found({ tools: [{ mcpServers: gemini }] })).toEqual(urls);
        const namespace = { type: "namespace", name: "n", tools };
        expect(found({ tools: [namespace] })).toEqual(urls);
        for (const type of ["additional_tools", "tool_search_output"])
          for (const list of [tools, [{ ...namespace, tools: [namespace] }]])
            expect(found({ input: ["x", { type: "message" }, { type, tools: list }] })).toEqual(
              urls,
            );
      },
    ),
  );
});
