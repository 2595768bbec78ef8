// Spans and metrics of MCP, under the names of the conventions.
import { expect, it } from "vitest";
import { jsonResponse, startUpstream } from "tollgate/testing";
import { until } from "../../../kit/wait.ts";
import { attributesOf, itemsOf } from "../../observers/decoded.ts";
import { MODERN, openSession, sendModern } from "./client.ts";
import { all, start } from "./gateway.ts";

type Json = Record<string, any>;

it("each request of a client is a span with its method, and each call of a tool a span with its cost", async () => {
  await using collector = await startUpstream({ "POST /*": jsonResponse({}) });
  const { url } = await start(
    {
      one: {
        revision: MODERN,
        prompts: [{ name: "greet" }],
        call: ({ name, args }) =>
          name === "echo" && args["fails"]
            ? { content: [], isError: true }
            : args["rejected"]
              ? { error: { code: args["rejected"], message: "No." } }
              : { content: [] },
      },
    },
    {
      server: { one: { prices: { echo: "0.002" } } },
      yaml: `observers: [{ use: otlp, with: { endpoint: "${collector.url}", batch_delay_ms: 10, metrics_interval_ms: 1000 } }]`,
    },
  );
  const client = { url: `${url}/one`, key: all };
  await sendModern(client, "tools/list");
  await sendModern(client, "tools/call", { name: "echo" });
  await sendModern(client, "tools/call", { name: "echo", arguments: { fails: true } });
  await sendModern(client, "tools/call", { name: "echo", arguments: { rejected: -32_602 } });
  await sendModern(client, "tools/call", { name: "echo", arguments: { rejected: 4_711 } });
  await sendModern(client, "tools/call", { name: "invented_by_a_client" });
  await sendModern(client, "prompts/get", { name: "greet" });
  await sendModern(client, "invented/method");
  await sendModern(client, "tools/list", {}, { headers: { "mcp-method": "tools/call" } });
  const session = await openSession(client);
  await session.send("ping");
  const posts = (path: string) => collector.requests.filter((one) => one.path === path);
  const spans = () => posts("/v1/traces").flatMap(itemsOf) as Json[];
  await until(() => spans().length >= 15);
  const shown = spans().map((span) => {
    const of = attributesOf(span) as Json;
    return [
      span["name"],
      of["mcp.method.name"],
      of["error.type"],
      of["rpc.response.status_code"],
      of["gen_ai.tool.name"] ?? of["gen_ai.prompt.name"],
      of["tollgate.cost.usd"],
    ];
  });
  const none = undefined;
  expect(shown).toEqual([
    ["tools/list", "tools/list", none, none, none, none],
    ["tools/call echo", "tools/call", none, none, none, none],
    ["tools/call echo", "tools/call", none, none, "echo", "0.002"],
    ["tools/call echo", "tools/call", "tool_error", none, none, none],
    ["tools/call echo", "tools/call", none, none, "echo", "0.002"],
    ["tools/call echo", "tools/call", "-32602", "-32602", none, none],
    ["tools/call echo", "tools/call", "upstream", none, "echo", "0"],
    ["tools/call echo", "tools/call", "_OTHER", none, none, none],
    ["tools/call echo", "tools/call", "upstream", none, "echo", "0"],
    ["tools/call", "tools/call", "-32602", "-32602", none, none],
    ["prompts/get greet", "prompts/get", none, none, "greet", none],
    ["_OTHER", "_OTHER", "-32601", "-32601", none, none],
    ["tools/list", "tools/list", "-32020", "-32020", none, none],
    ["initialize", "initialize", none, none, none, none],
    ["ping", "ping", none, none, none, none],
  ]);
  const [list, , call] = spans().map(attributesOf) as Json[];
  expect(list!["mcp.protocol.version"]).toBe(MODERN);
  expect(call).toMatchObject({
    "gen_ai.operation.name": "execute_tool",
    "network.transport": "tcp",
    "tollgate.provider": "mcp:one",
  });
});
