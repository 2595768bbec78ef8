// MCP servers of the gateway in the Messages API, with Anthropic's SDK: whole and streamed, in front of
// providers of every protocol.
import Anthropic from "@anthropic-ai/sdk";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { until } from "../../kit/wait.ts";
import { KEYS, model, sentBodies, start, type KeyName, type Setup } from "./model-tools-kit.ts";

let at: Setup;
beforeAll(async () => {
  at = await start();
});
afterAll(() => at?.[Symbol.asyncDispose]());
beforeEach(() => {
  at.up.reset();
  at.server.received.length = 0;
});

type Params = Anthropic.Beta.Messages.MessageCreateParamsNonStreaming;
type Message = Anthropic.Beta.Messages.BetaMessage;
const client = (key: KeyName = "all") =>
  new Anthropic({ apiKey: KEYS[key], baseURL: at.gateway.url, maxRetries: 0 });
const MODELS = ["openai/gpt-4.1", "claude/claude-opus-5", "plain/model"];
const servers = [{ type: "url", url: "/mcp/math", name: "calc" }] as const;
const toolset = (more: object = {}) => ({
  type: "mcp_toolset" as const,
  mcp_server_name: "calc",
  ...more,
});

async function ask(params: Partial<Params>, isStreamed: boolean, key?: KeyName) {
  const body: Params = {
    model: MODELS[1]!,
    max_tokens: 1_000,
    messages: [{ role: "user", content: "What is 1 + 2?" }],
    mcp_servers: [...servers],
    tools: [toolset()],
    betas: ["mcp-client-2025-11-20"],
    ...params,
  };
  if (!isStreamed) return client(key).beta.messages.create(body);
  const stream = client(key).beta.messages.stream(body);
  return (await stream.finalMessage()) as Message;
}
const types = ({ content }: Message) => content.map(({ type }) => type);
const calls = (name: string) =>
  at.server.received.filter(
    ({ method, body }) => method === "tools/call" && body["params"].name === name,
  );
const textOf = ({ content }: Message) =>
  content.map((block) => (block.type === "text" ? block.text : "")).join("");

describe.each([false, true])("streamed: %s", (isStreamed) => {
  it.each(MODELS)("a tool of the gateway is called, and its result returned: %s", async (name) => {
    at.up.setRoutes(model([["calc__add", { a: 1, b: 2 }]], [["calc__echo", { x: 1 }]]));
    const before = (await at.rows()).length;
    const message = await ask({ model: name }, isStreamed);
    expect(message).toMatchObject({
      type: "message",
      role: "assistant",
      model: name,
      stop_reason: "end_turn",
      content: [
        { type: "mcp_tool_use", name: "add", server_name: "calc", input: { a: 1, b: 2 } },
        { type: "mcp_tool_result", is_error: false, content: [{ type: "text", text: "3" }] },
        { type: "mcp_tool_use", name: "echo", input: { x: 1 } },
        { type: "mcp_tool_result", content: [{ type: "text", text: '{"x":1}' }] },
        { type: "text", text: 'Results: {"x":1}' },
      ],
    });
    const [use, result] = message.content as unknown as [{ id: string }, { tool_use_id: string }];
    expect(result.tool_use_id).toBe(use.id);
    const rows = (await at.rows()).slice(before);
    const provider = name.split("/")[0];
    expect(rows.map(({ target, outcome, state }) => [target.provider, outcome, state])).toEqual(
      [provider, "mcp:math", provider, "mcp:math", provider].map((one) => [one, "ok", "exact"]),
    );
    const sum = (unit: string) => rows.reduce((all, { usage }) => all + (usage[unit] ?? 0), 0);
    expect(message.usage).toMatchObject({
      input_tokens: sum("input"),
      output_tokens: sum("output"),
    });
    expect([message.usage.input_tokens, message.usage.output_tokens]).toEqual([30, 15]);
    expect(new Set(rows.map(({ labels }) => labels["parent"])).size).toBe(1);
  });

  it("a conversation with calls continues, and each turn is as the model has seen it", async () => {
    at.up.setRoutes(model([["calc__add", { a: 1, b: 2 }], ["calc__echo"]], [["calc__echo"]]));
    const { content } = await ask({}, isStreamed);
    at.up.setRoutes(model());
    const messages = [
      { role: "user", content: "What is 1 + 2?" },
      { role: "assistant", content },
      { role: "user", content: "Thanks" },
    ] as Params["messages"];
    // Without the server, the calls of before are known by their IDs.
    await ask({ messages, mcp_servers: [], tools: [] }, isStreamed);
    const bodies = sentBodies(at.up);
    const roles = bodies
      .at(-1)
      .messages.map(({ role, content: of }: any) => [
        role,
        typeof of === "string" ? of : of.map((block: any) => block.type),
      ]);
    expect(roles).toEqual([
      ["user", "What is 1 + 2?"],
      ["assistant", ["tool_use", "tool_use"]],
      ["user", ["tool_result", "tool_result"]],
      ["assistant", ["tool_use"]],
      ["user", ["tool_result"]],
      ["assistant", ["text"]],
      ["user", "Thanks"],
    ]);
    // The last turn of the first request had the same beginning.
    const last = bodies.at(-2).messages;
    expect(bodies.at(-1).messages.slice(0, last.length)).toEqual(last);
  });

  it("a tool that the key may not call reaches neither the model nor the answer", async () => {
    at.up.setRoutes(model([["calc__drop_table"]]));
    const message = await ask({}, isStreamed, "some");
    const [sent] = sentBodies(at.up);
    expect(sent.tools.map(({ name }: { name: string }) => name)).toEqual([
      "calc__add",
      "calc__echo",
    ]);
    expect(sent.mcp_servers).toBeUndefined();
    // The model invented the name. The call is the client's, and no server receives it.
    expect(types(message)).toEqual(["tool_use"]);
    expect(calls("drop_table")).toEqual([]);
  });

  it("the toolset selects tools, and the limits hold", async () => {
    const again: [string, object][] = [["calc__add", { a: 1, b: 1 }]];
    at.up.setRoutes(model([...again, ["calc__big"], ["calc__fails"]], again, again, again));
    const configs = { add: { enabled: true }, big: { enabled: true }, fails: { enabled: true } };
    const set = toolset({
      default_config: { enabled: false },
      configs,
      cache_control: { type: "ephemeral" },
    });
    const message = await ask(
      { tools: [set], tool_choice: { type: "any", disable_parallel_tool_use: true } },
      isStreamed,
    );
    const results = message.content.filter((block) => block.type === "mcp_tool_result");
    expect(
      results.map(({ is_error: isError, content }) => [isError, (content as any)[0].text]),
    ).toEqual([
      [false, "2"],
      [true, "The result of the tool is too large."],
      [true, "It failed."],
      [false, "2"],
      [false, "2"],
    ]);
    const bodies = sentBodies(at.up);
    expect(bodies[0].tools.map((tool: any) => [tool.name, tool.cache_control])).toEqual([
      ["calc__add", undefined],
      ["calc__big", undefined],
      ["calc__fails", { type: "ephemeral" }],
    ]);
    expect(bodies.map((body) => body.tool_choice.type)).toEqual(["any", "auto", "auto", "none"]);
    expect(bodies.map((body) => body.max_tokens)).toEqual([1_000, 995, 990, 985]);
    expect(textOf(message)).toBe("Results: 2");
  });

  it("with a call of the client, the message ends and the client answers", async () => {
    at.up.setRoutes(
      model([
        ["own", {}],
        ["calc__add", { a: 1, b: 2 }],
      ]),
    );
    const own = { name: "own", input_schema: { type: "object" as const } };
    const message = await ask({ tools: [own, toolset()] }, isStreamed);
    expect(message.stop_reason).toBe("tool_use");
    expect(types(message)).toEqual(["tool_use", "mcp_tool_use", "mcp_tool_result"]);
    const { id } = message.content[0] as { id: string };
    at.up.setRoutes(model());
    const messages = [
      { role: "user", content: "x" },
      { role: "assistant", content: message.content },
      { role: "user", content: [{ type: "tool_result", tool_use_id: id, content: "mine" }] },
    ] as Params["messages"];
    const next = await ask({ tools: [own, toolset()], messages }, isStreamed);
    expect(textOf(next)).toBe("Results: 3, mine");
    const roles = sentBodies(at.up)
      .at(-1)
      .messages.map(({ role }: { role: string }) => role);
    expect(roles).toEqual(["user", "assistant", "user"]);
  });

  it("errors of the model and of the list reach the client", async () => {
    const again: [string, object][] = [["calc__add", { a: 1, b: 2 }]];
    at.up.setRoutes(model(again, again, again));
    // The limit allows two turns and one call.
    await expect(ask({}, isStreamed, isStreamed ? "few" : "fewer")).rejects.toThrow();
    for (const [key, url] of [
      ["none", "/mcp/math"],
      ["all", "/mcp/other"],
    ] as const) {
      const failing = ask({ mcp_servers: [{ type: "url", url, name: "calc" }] }, isStreamed, key);
      await expect(failing).rejects.toMatchObject({ status: 502 });
    }
  });
});

it("a client that disconnects ends the call of the tool, and each row is settled", async () => {
  at.up.setRoutes(model([["calc__hangs"]], [["calc__hangs"]]));
  const before = (await at.rows()).length;
  const stop = new AbortController();
  const stream = await client().beta.messages.create(
    {
      model: MODELS[1]!,
      max_tokens: 100,
      messages: [{ role: "user", content: "x" }],
      mcp_servers: [...servers],
      tools: [toolset()],
      stream: true,
    },
    { signal: stop.signal },
  );
  const called = until(() => calls("hangs").length === 1).then(() => stop.abort());
  for await (const event of stream) void event;
  await called;
  await until(async () => (await at.rows()).length === before + 2);
  const outcomes = (await at.rows()).slice(before).map(({ outcome }) => outcome);
  expect(outcomes).toEqual(["ok", "canceled"]);
  expect(sentBodies(at.up)).toHaveLength(1);
});

it("other servers pass to the provider, in both betas, and tokens are counted with the tools", async () => {
  at.up.setRoutes(model());
  const far = { type: "url" as const, url: "https://mcp.example.com/mcp", name: "far" };
  const old = { ...servers[0], tool_configuration: { allowed_tools: ["add"] } };
  await ask({ mcp_servers: [far, old], tools: [{ ...toolset(), mcp_server_name: "far" }] }, false);
  const [sent] = sentBodies(at.up);
  expect(sent.mcp_servers).toEqual([far]);
  expect(sent.tools).toEqual([
    { ...toolset(), mcp_server_name: "far" },
    expect.objectContaining({ name: "calc__add" }),
  ]);
  const counted = await client().beta.messages.countTokens({
    model: MODELS[1]!,
    messages: [{ role: "user", content: "x" }],
    mcp_servers: [...servers],
    tools: [toolset()],
  });
  expect(counted.input_tokens).toBe(42);
  expect(sentBodies(at.up).at(-1).tools).toHaveLength(6);
});

it("with zero data retention, only servers that declare it are called", async () => {
  const headers = { "service-zdr": "required" };
  const body = {
    model: "clean/model",
    max_tokens: 1_000,
    messages: [{ role: "user" as const, content: "x" }],
    tools: [toolset()],
  };
  for (const isStreamed of [false, true])
    for (const [url, isError] of [
      ["/mcp/private", false],
      ["/mcp/math", true],
    ] as const) {
      at.up.setRoutes(model([["calc__add", { a: 1, b: 2 }]]));
      const own = { ...body, mcp_servers: [{ type: "url" as const, url, name: "calc" }] };
      const created = client().beta.messages;
      const message = isStreamed
        ? await created.stream(own, { headers }).finalMessage()
        : await created.create(own, { headers });
      expect(message.content[1]).toMatchObject({ type: "mcp_tool_result", is_error: isError });
      if (isError) expect(JSON.stringify(message.content[1])).toContain("zero data retention");
    }
  expect(calls("add")).toHaveLength(2);
  // No provider of this model is known to keep nothing.
  const kept = { ...body, model: MODELS[1]!, mcp_servers: [...servers] };
  await expect(client().beta.messages.create(kept, { headers })).rejects.toMatchObject({
    status: 403,
  });
});

it("with zero data retention, no provider connects to a server", async () => {
  at.up.setRoutes(model());
  const headers = { "service-zdr": "required" };
  const far = { type: "url" as const, url: "https://mcp.example.com/mcp", name: "far" };
  for (const name of ["clean/model", MODELS[1]!]) {
    const body = {
      model: name,
      max_tokens: 100,
      messages: [{ role: "user" as const, content: "x" }],
      mcp_servers: [far],
      tools: [toolset({ mcp_server_name: "far" })],
    };
    const failing = client().beta.messages.create(body, { headers });
    await expect(failing).rejects.toMatchObject({ status: expect.any(Number) });
  }
  expect(JSON.stringify(sentBodies(at.up))).not.toContain("mcp.example.com");
});
