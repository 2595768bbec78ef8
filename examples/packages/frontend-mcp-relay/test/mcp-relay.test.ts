// An MCP server behind the gateway: tools per key, its own token, and one key per session.
import { defineMiddleware } from "tollgate/plugin";
import {
  eventStreamResponse,
  jsonResponse,
  startGateway,
  startUpstream,
  type ScriptedResponse,
} from "tollgate/testing";
import { testConformance } from "tollgate/testing/vitest";
import { describe, expect, test } from "vitest";
import manifest from "../package.json" with { type: "json" };
import plugin from "../src/index.ts";

testConformance(plugin, {
  ...manifest.tollgate,
  module: new URL("../src/index.ts", import.meta.url),
});

const door = defineMiddleware({
  api: 1,
  name: "door",
  summary: "Takes every key for its own name",
  sends: "nowhere",
  setup: () => ({
    admit(x, secret) {
      if (secret !== undefined)
        x.identify({ id: secret, labels: { team: secret === "web" ? "web" : "" } });
    },
  }),
});

const TOOLS = ["search", "crawl_page", "delete_all"].map((name) => ({ name }));

async function house(stream: boolean) {
  const told = (message: object): ScriptedResponse =>
    stream
      ? {
          ...eventStreamResponse([
            "id: 1\ndata:\n\n",
            `event: message\ndata: ${JSON.stringify(message)}\n\n`,
          ]),
          chunks: "bytes",
        }
      : jsonResponse(message as never);
  const server = await startUpstream({
    "POST /mcp": (asked) => {
      if (asked.headers.authorization !== "Bearer canary-token") return jsonResponse({}, 401);
      const { id, method, params } = asked.json();
      if (id === undefined) return { status: 202 };
      const result =
        method === "tools/list"
          ? { tools: TOOLS }
          : { content: [{ type: "text", text: `did ${params?.name}` }] };
      const answer = told({ jsonrpc: "2.0", id, result });
      return method === "initialize"
        ? { ...answer, headers: { ...answer.headers, "mcp-session-id": "s1" } }
        : answer;
    },
    "GET /mcp": eventStreamResponse(['data: {"jsonrpc":"2.0","method":"notifications/x"}\n\n']),
    "DELETE /mcp": { status: 204 },
  });
  const tools = { "*": ["search"], "label:team=web": ["crawl_*"], root: ["*"] };
  const at = await startGateway({
    plugins: { "mcp-relay": plugin, door },
    config: {
      frontends: [
        "chat-completions",
        {
          use: "mcp-relay",
          with: { name: "exa", url: `${server.url}/mcp`, token: "canary-token", tools },
        },
      ],
      middleware: ["door"],
      providers: { demo: { use: "demo" } },
    },
  });
  const send = (
    key: string,
    message: unknown,
    headers: Record<string, string> = {},
    method = "POST",
  ) =>
    fetch(`${at.url}/mcp/exa`, {
      method,
      headers: {
        "content-type": "application/json",
        accept: "application/json, text/event-stream",
        authorization: `Bearer ${key}`,
        ...headers,
      },
      ...(method === "POST" && { body: JSON.stringify(message) }),
    });
  const said = async (answer: Response) => {
    const text = await answer.text();
    return JSON.parse(/^data: (\{.*)$/m.exec(text)?.[1] ?? text);
  };
  const dispose = async () => {
    await at[Symbol.asyncDispose]();
    await server.close();
  };
  return { at, server, send, said, [Symbol.asyncDispose]: dispose };
}
const rpc = (method: string, params: object = {}) => ({ jsonrpc: "2.0", id: 7, method, params });

describe.each([true, false])("as events: %s", (stream) => {
  test("a key lists and calls only its own tools", async () => {
    await using it = await house(stream);
    for (const [key, mine] of [
      ["ann", ["search"]],
      ["web", ["search", "crawl_page"]],
      ["root", ["search", "crawl_page", "delete_all"]],
    ] as const) {
      const list = await it.said(await it.send(key, rpc("tools/list")));
      expect(list.result.tools.map((one: { name: string }) => one.name)).toEqual(mine);
      for (const { name } of TOOLS) {
        const before = it.server.requests.length;
        const answer = await it.said(await it.send(key, rpc("tools/call", { name })));
        const may = (mine as readonly string[]).includes(name);
        if (may) expect(answer.result.content[0].text).toBe(`did ${name}`);
        else expect(answer).toMatchObject({ id: 7, error: { code: -32602 } });
        expect(it.server.requests.length - before).toBe(may ? 1 : 0);
      }
    }
  });

  test("the server receives its token and never a key; only the key of a session can use it", async () => {
    await using it = await house(stream);
    const begun = await it.send("ann", rpc("initialize"));
    const session = begun.headers.get("mcp-session-id")!;
    expect(session).not.toBe("s1");
    await begun.text();
    const with_ = { "mcp-session-id": session };
    expect(
      (await it.send("ann", { jsonrpc: "2.0", method: "notifications/initialized" }, with_)).status,
    ).toBe(202);
    expect((await it.send("web", rpc("tools/list"), with_)).status).toBe(404);
    expect((await it.send("ann", rpc("tools/list"), { "mcp-session-id": "s1" })).status).toBe(404);
    expect(await (await it.send("ann", undefined, with_, "GET")).text()).toContain(
      "notifications/x",
    );
    expect((await it.send("ann", undefined, with_, "DELETE")).status).toBe(204);
    for (const { headers, rawHeaders } of it.server.requests) {
      expect(headers["mcp-session-id"] ?? "s1").toBe("s1");
      expect(rawHeaders.join(" ")).not.toContain("ann");
    }
  });
});

test("requests without a key, for an unknown server, and in a batch are rejected and not forwarded", async () => {
  await using it = await house(false);
  expect(
    (
      await fetch(`${it.at.url}/mcp/exa`, {
        method: "POST",
        body: "{}",
        headers: { "content-type": "application/json" },
      })
    ).status,
  ).toBe(401);
  expect(
    (await fetch(`${it.at.url}/mcp/other`, { headers: { authorization: "Bearer ann" } })).status,
  ).toBe(404);
  expect((await it.send("ann", [rpc("tools/call", { name: "delete_all" })])).status).toBe(400);
  expect(it.server.requests).toHaveLength(0);
});
