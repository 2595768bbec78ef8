// MCP servers of the gateway in the Responses API, with OpenAI's SDK: whole and streamed, in front of
// providers of every protocol.
import OpenAI from "openai";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { dial } from "../../kit/socket-client.ts";
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

type Params = OpenAI.Responses.ResponseCreateParamsNonStreaming;
type Response = OpenAI.Responses.Response;
type Event = OpenAI.Responses.ResponseStreamEvent;
const client = (key: KeyName = "all") =>
  new OpenAI({ apiKey: KEYS[key], baseURL: `${at.gateway.url}/v1`, maxRetries: 0 });
const server = (more: object = {}): OpenAI.Responses.Tool.Mcp => ({
  type: "mcp",
  server_label: "calc",
  server_url: "/mcp/math",
  require_approval: "never",
  ...more,
});
const MODELS = ["openai/gpt-4.1", "claude/claude-opus-5", "plain/model"];

/** Sends a request whole or streamed. Returns the response and all events. */
async function respond(params: Partial<Params>, isStreamed: boolean, key?: KeyName) {
  const body: Params = { model: MODELS[0]!, input: "What is 1 + 2?", tools: [server()], ...params };
  const events: Event[] = [];
  if (!isStreamed) return { response: await client(key).responses.create(body), events };
  const stream = client(key).responses.stream(body as never);
  for await (const event of stream) events.push(event as Event);
  return { response: (await stream.finalResponse()) as Response, events };
}
const calls = (name: string) =>
  at.server.received.filter(
    ({ method, body }) => method === "tools/call" && body["params"].name === name,
  );
const types = ({ output }: Response) => output.map(({ type }) => type);

describe.each([false, true])("streamed: %s", (isStreamed) => {
  it.each(MODELS)(
    "a tool of the gateway is called and the model gets its result: %s",
    async (name) => {
      at.up.setRoutes(model([["calc__add", { a: 1, b: 2 }]], [["calc__echo", { x: 1 }]]));
      const before = (await at.rows()).length;
      const { response, events } = await respond({ model: name }, isStreamed);
      expect(response).toMatchObject({
        object: "response",
        status: "completed",
        model: name,
        output: [
          { type: "mcp_list_tools", server_label: "calc", error: null },
          {
            type: "mcp_call",
            status: "completed",
            server_label: "calc",
            name: "add",
            output: "3",
            error: null,
          },
          { type: "mcp_call", status: "completed", name: "echo", output: '{"x":1}' },
          { type: "message" },
        ],
        tools: [server()],
      });
      expect(JSON.parse((response.output[1] as { arguments: string }).arguments)).toEqual({
        a: 1,
        b: 2,
      });
      expect(response.output_text).toBe('Results: {"x":1}');
      // Each turn and each call of a tool has a row, and their sum is the usage of the response.
      const rows = (await at.rows()).slice(before);
      expect(rows.map(({ target, outcome, state }) => [target.provider, outcome, state])).toEqual(
        [name.split("/")[0], "mcp:math", name.split("/")[0], "mcp:math", name.split("/")[0]].map(
          (provider) => [provider, "ok", "exact"],
        ),
      );
      const sum = (unit: string) => rows.reduce((all, { usage }) => all + (usage[unit] ?? 0), 0);
      expect(response.usage).toMatchObject({
        input_tokens: sum("input"),
        output_tokens: sum("output"),
        total_tokens: sum("input") + sum("output"),
      });
      expect(response.usage!.input_tokens).toBe(30);
      expect(new Set(rows.map(({ labels }) => labels["parent"])).size).toBe(1);
      if (!isStreamed) return;
      expect(events.map((event) => event.sequence_number)).toEqual(events.map((_, n) => n));
      const ofCall = events.filter(
        (event) => (event as { output_index?: number }).output_index === 1,
      );
      const kinds = ofCall.map(({ type }) => type).filter((type) => !type.endsWith(".delta"));
      expect(kinds).toEqual([
        "response.output_item.added",
        "response.mcp_call.in_progress",
        "response.mcp_call_arguments.done",
        "response.mcp_call.completed",
        "response.output_item.done",
      ]);
      expect(events.filter(({ type }) => type === "response.created")).toHaveLength(1);
      expect(events.at(-1)).toMatchObject({ type: "response.completed" });
    },
  );

  it("a tool that the key may not call reaches neither the model nor the answer", async () => {
    at.up.setRoutes(model([["calc__drop_table"], ["calc__add", { a: 1, b: 2 }]]));
    const { response } = await respond({}, isStreamed, "some");
    const list = response.output[0] as OpenAI.Responses.ResponseOutputItem.McpListTools;
    expect(list.tools.map(({ name }) => name)).toEqual(["add", "echo"]);
    expect(JSON.stringify(sentBodies(at.up)[0])).not.toContain("drop_table");
    // The model invented the name. The call is the client's, and no server receives it.
    expect(types(response)).toEqual(["mcp_list_tools", "function_call", "mcp_call"]);
    expect(calls("drop_table")).toEqual([]);
  });

  it("allowed_tools selects, and each call beyond a limit gets an error", async () => {
    const allowed = { tool_names: ["add", "big", "fails"] };
    at.up.setRoutes(
      model(
        [["calc__add", { a: 1, b: 1 }], ["calc__big"], ["calc__fails"]],
        [
          ["calc__add", { a: 2, b: 2 }],
          ["calc__add", { a: 3, b: 3 }],
          ["calc__add", { a: 4, b: 4 }],
        ],
      ),
    );
    const { response } = await respond({ tools: [server({ allowed_tools: allowed })] }, isStreamed);
    const outputs = response.output.filter((one) => one.type === "mcp_call");
    expect(outputs.map(({ status, output, error }) => [status, output ?? error])).toEqual([
      ["completed", "2"],
      ["failed", expect.objectContaining({ message: "The result of the tool is too large." })],
      [
        "failed",
        { type: "mcp_tool_execution_error", content: [{ type: "text", text: "It failed." }] },
      ],
      ["completed", "4"],
      ["completed", "6"],
      ["failed", expect.objectContaining({ message: expect.stringContaining("maximum number") })],
    ]);
    const bodies = sentBodies(at.up);
    expect(bodies.map((body) => body.tools.length)).toEqual([3, 3, 3]);
    expect(bodies.map((body) => body.tool_choice)).toEqual([undefined, undefined, "none"]);
  });

  it("the number of turns is limited", async () => {
    const again: [string, object][] = [["calc__add", { a: 1, b: 1 }]];
    at.up.setRoutes(model(again, again, again, again, again));
    const { response } = await respond({ tool_choice: "required" }, isStreamed);
    expect(sentBodies(at.up).map((body) => body.tool_choice)).toEqual([
      "required",
      "auto",
      "auto",
      "none",
    ]);
    expect(types(response).filter((type) => type === "mcp_call")).toHaveLength(3);
    expect(response.output_text).toBe("Results: 2");
  });

  it("a call waits for approval, which a later request gives or denies", async () => {
    at.up.setRoutes(model([["calc__add", { a: 1, b: 2 }]], []));
    const tools = [server({ require_approval: { never: { tool_names: ["echo"] } } })];
    const { response: asked } = await respond({ tools }, isStreamed);
    expect(types(asked)).toEqual(["mcp_list_tools", "mcp_approval_request"]);
    expect(calls("add")).toEqual([]);
    const request = asked.output[1] as OpenAI.Responses.ResponseOutputItem.McpApprovalRequest;
    expect(JSON.parse(request.arguments)).toEqual({ a: 1, b: 2 });
    const input = (approve: boolean) =>
      [
        { role: "user", content: "What is 1 + 2?" },
        ...asked.output,
        { type: "mcp_approval_response", approval_request_id: request.id, approve },
      ] as OpenAI.Responses.ResponseInput;
    at.up.setRoutes(model());
    const { response: approved } = await respond({ tools, input: input(true) }, isStreamed);
    expect(approved.output[0]).toMatchObject({
      type: "mcp_call",
      approval_request_id: request.id,
      output: "3",
    });
    expect(approved.output_text).toBe("Results: 3");
    expect(calls("add")).toHaveLength(1);
    const { response: denied } = await respond({ tools, input: input(false) }, isStreamed);
    expect(denied.output_text).toBe("Results: The user did not approve this call.");
    // The conversation continues, and the approved call is not made again.
    const later = [...input(true), ...approved.output, { role: "user", content: "Thanks" }];
    await respond({ tools, input: later as never }, isStreamed);
    expect(calls("add")).toHaveLength(1);
    const items = sentBodies(at.up)
      .at(-1)
      .input.map((item: any) => item.type ?? item.role);
    expect(items).toEqual(["user", "function_call", "function_call_output", "message", "user"]);
    // Another key cannot use the approval.
    await expect(respond({ tools, input: input(true) }, isStreamed, "some")).rejects.toMatchObject({
      status: 400,
    });
  });

  it("with a call of the client, the response ends and the client answers", async () => {
    at.up.setRoutes(
      model(
        [
          ["calc__add", { a: 1, b: 2 }],
          ["own", {}],
        ],
        [],
      ),
    );
    const own = { type: "function", name: "own", parameters: { type: "object" }, strict: false };
    const tools = [server(), own] as OpenAI.Responses.Tool[];
    const { response } = await respond({ tools }, isStreamed);
    expect(types(response)).toEqual(["mcp_list_tools", "mcp_call", "function_call"]);
    expect(response.output[1]).toMatchObject({ output: "3" });
    const { call_id } = response.output[2] as { call_id: string };
    const input = [
      { role: "user", content: "x" },
      ...response.output,
      { type: "function_call_output", call_id, output: "mine" },
    ];
    at.up.setRoutes(model());
    const { response: next } = await respond({ tools, input: input as never }, isStreamed);
    expect(next.output_text).toBe("Results: mine");
  });

  it("errors of the model and of the list reach the client", async () => {
    const again: [string, object][] = [["calc__add", { a: 1, b: 2 }]];
    at.up.setRoutes(model(again, again, again));
    // The limit allows two turns and one call.
    const running = respond({}, isStreamed, isStreamed ? "few" : "fewer");
    if (isStreamed)
      await expect(running.then(({ response }) => response)).resolves.toMatchObject({
        status: "failed",
        output: [{}, { type: "mcp_call", output: "3" }, { status: "failed" }],
        error: { message: expect.any(String) },
      });
    else await expect(running).rejects.toMatchObject({ status: 429 });
    for (const [key, url] of [
      ["none", "/mcp/math"],
      ["all", "/mcp/other"],
    ] as const) {
      const failing = respond({ tools: [server({ server_url: url })] }, isStreamed, key);
      await expect(failing).rejects.toMatchObject({ code: "mcp_list_failed" });
    }
    await expect(
      respond({ tools: [server({ allowed_tools: 1 })] }, isStreamed),
    ).rejects.toMatchObject({ status: 400, param: "tools[0].allowed_tools" });
  });
});

it("a client that disconnects ends the call of the tool and the loop, and each row is settled", async () => {
  at.up.setRoutes(model([["calc__hangs"]], [["calc__hangs"]]));
  const before = (await at.rows()).length;
  const stop = new AbortController();
  const stream = await client().responses.create(
    { model: MODELS[0]!, input: "x", tools: [server()], stream: true },
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

it("a response is continued by its ID", async () => {
  at.up.setRoutes(model([["calc__add", { a: 1, b: 2 }]]));
  const { response } = await respond({ store: true }, true);
  at.up.setRoutes(model());
  const more = { previous_response_id: response.id, input: "More", store: true };
  const { response: next } = await respond(more, false);
  expect(next.previous_response_id).toBe(response.id);
  const last = sentBodies(at.up).at(-1);
  expect(last.previous_response_id).toMatch(/^resp_\d+$/);
  await expect(respond(more, false, "some")).rejects.toMatchObject({
    code: "previous_response_not_found",
  });
});

it("a response in the background calls tools, and is continued by its ID", async () => {
  at.up.setRoutes(model([["calc__add", { a: 1, b: 2 }]]));
  const body = { model: MODELS[0]!, input: "x", tools: [server()] };
  const { id, status } = await client().responses.create({ ...body, background: true });
  expect(status).toBe("queued");
  let response: Response | undefined;
  await until(
    async () =>
      (response = await client().responses.retrieve(id)).status !== "queued" &&
      response.status !== "in_progress",
  );
  expect(response).toMatchObject({ id, status: "completed", background: true });
  expect(types(response!)).toEqual(["mcp_list_tools", "mcp_call", "message"]);
  expect(response!.usage!.input_tokens).toBe(20);
  at.up.setRoutes(model());
  await respond({ previous_response_id: id, input: "More", store: true }, false);
  expect(sentBodies(at.up).at(-1).previous_response_id).toMatch(/^resp_\d+$/);
});

it("tokens are counted with the tools", async () => {
  at.up.setRoutes(model());
  const counted = await client().responses.inputTokens.count({
    model: MODELS[0]!,
    input: "x",
    tools: [server()],
    tool_choice: { type: "mcp", server_label: "calc", name: "add" },
  });
  expect(counted.input_tokens).toBe(42);
  const [sent] = sentBodies(at.up);
  expect(sent.tools).toHaveLength(6);
  expect(sent.tool_choice).toEqual({ type: "function", name: "calc__add" });
});

it("with zero data retention, only servers that declare it are called", async () => {
  const headers = { "service-zdr": "required" };
  for (const [path, output] of [
    ["/mcp/private", "3"],
    ["/mcp/math", null],
  ] as const) {
    at.up.setRoutes(model([["calc__add", { a: 1, b: 2 }]]));
    const body = { model: "clean/model", input: "x", tools: [server({ server_url: path })] };
    const { data: response, response: got } = await client()
      .responses.create(body, { headers })
      .withResponse();
    expect(response.output[1]).toMatchObject({ type: "mcp_call", output });
    const policy = expect.stringMatching(/^clean\/chat-completions;retention=zero;/);
    expect(got.headers.get("service-zdr-policy")).toEqual(policy);
    at.up.setRoutes(model());
    const streamed = await client()
      .responses.create({ ...body, stream: true }, { headers })
      .withResponse();
    expect(streamed.response.headers.get("service-zdr-policy")).toEqual(policy);
    for await (const event of streamed.data) void event;
  }
  expect(calls("add")).toHaveLength(1);
  const body = { model: MODELS[0]!, input: "x", tools: [server()] };
  await expect(client().responses.create(body, { headers })).rejects.toMatchObject({ status: 403 });
  at.up.setRoutes(model());
  const off = { headers: { "service-zdr": "off" } };
  expect((await client().responses.create(body, off)).status).toBe("completed");
});

it("with zero data retention, a provider calls no server", async () => {
  at.up.setRoutes(model());
  const remote = server({ server_label: "far", server_url: "https://mcp.example.com/mcp" });
  const ask = (tools: OpenAI.Responses.Tool[], retention: "required" | "off", stream = false) =>
    client().responses.create(
      { model: "cleared/gpt-4.1", input: "x", tools, store: false, stream },
      { headers: { "service-zdr": retention } },
    );
  for (const tools of [[remote], [server(), remote]])
    for (const stream of [false, true])
      await expect(ask(tools, "required", stream)).rejects.toMatchObject({
        status: 400,
        code: "unsupported_tool",
      });
  expect(sentBodies(at.up)).toEqual([]);
  // The header is the reason: without it, the provider gets the server.
  await ask([], "required");
  await ask([remote], "off");
  expect(sentBodies(at.up).map(({ tools }) => tools ?? [])).toEqual([[], [remote]]);
});

it("a WebSocket refuses servers of this gateway", async () => {
  await using socket = await dial(at.gateway.url, { key: KEYS.all });
  socket.send({ type: "response.create", model: MODELS[0]!, input: "x", tools: [server()] });
  const [refused] = await socket.until(({ type }) => type === "error");
  expect(JSON.stringify(refused)).toContain("not available over a WebSocket");
  expect(sentBodies(at.up)).toEqual([]);
});

it("an Idempotency-Key prevents a second run", async () => {
  at.up.setRoutes(model([["calc__add", { a: 1, b: 2 }]]));
  const headers = { "idempotency-key": "once" };
  const body = { model: MODELS[0]!, input: "x", tools: [server()] };
  const first = await client().responses.create(body, { headers });
  expect(types(first)).toContain("mcp_call");
  await expect(client().responses.create(body, { headers })).rejects.toMatchObject({
    status: 409,
    code: "idempotency_done",
  });
  expect(calls("add")).toHaveLength(1);
});

it.each([0, 1])(
  "a client that disconnects during turn %s cannot run the request again, and its cost is complete",
  async (turn) => {
    const routes = turn === 0 ? model() : model([["calc__add", { a: 1, b: 2 }]]);
    at.up.setRoutes({
      ...routes,
      "POST /v1/chat/completions": async (request) => {
        const answer = await (routes["POST /v1/chat/completions"] as any)(request);
        const isOpen = sentBodies(at.up).length > turn;
        return isOpen ? { ...answer, truncation: { after: { pieces: 2 }, how: "stall" } } : answer;
      },
    });
    const before = (await at.rows()).length;
    const headers = { "idempotency-key": `open ${turn}` };
    const input = { model: "plain/model", input: "x", tools: [server()] };
    const body = { ...input, stream: true as const };
    const stop = new AbortController();
    const stream = await client().responses.create(body, { headers, signal: stop.signal });
    const reached = until(() => sentBodies(at.up).length === turn + 1).then(() => stop.abort());
    for await (const event of stream) void event;
    await reached;
    const made = 1 + 2 * turn;
    await until(async () => (await at.rows()).length === before + made);
    let error: any;
    await until(async () => {
      error = await client()
        .responses.create(body, { headers })
        .catch((problem: unknown) => problem);
      return error.code !== "idempotency_in_flight";
    });
    expect(error).toMatchObject({ status: 409, code: "idempotency_done" });
    const cost = (await at.rows())
      .slice(before)
      .reduce((sum, row) => sum + BigInt((row as any).costNano), 0n);
    expect(JSON.stringify(error.error)).toContain(`"cost_nano_usd":"${cost}"`);
    expect(sentBodies(at.up)).toHaveLength(turn + 1);
  },
);

it("items of the gateway are resolved from references before they are read", async () => {
  at.up.setRoutes(model([["calc__add", { a: 1, b: 2 }]], []));
  const tools = [server({ require_approval: { never: { tool_names: ["echo"] } } })];
  const { response: asked } = await respond({ tools }, false);
  const reference = ({ id }: { id?: string | null }) => ({ type: "item_reference", id });
  const { id } = asked.output.at(-1)! as { id: string };
  const input = [
    { role: "user", content: "x" },
    ...asked.output.map(reference as never),
    { type: "mcp_approval_response", approval_request_id: id, approve: true },
  ] as OpenAI.Responses.ResponseInput;
  at.up.setRoutes(model());
  const { response: approved } = await respond({ tools, input }, false);
  expect(approved.output_text).toBe("Results: 3");
  const later = [
    ...input,
    ...approved.output.map(reference as never),
    { role: "user" as const, content: "y" },
  ];
  await respond({ tools, input: later as never }, false);
  // Without the server, too, the provider gets no item of the gateway.
  await respond({ tools: [], input: later as never }, false);
  await client().responses.inputTokens.count({ model: MODELS[0]!, tools, input: later as never });
  for (const body of sentBodies(at.up))
    expect(JSON.stringify(body)).not.toMatch(/"mcpr?_gw_|"mcp_/);
  expect(calls("add")).toHaveLength(1);
});

it("an approval next to a call without one is continued with all items, not by the response's ID", async () => {
  at.up.setRoutes(model([["calc__add", { a: 1, b: 2 }], ["calc__echo"]], []));
  const tools = [server({ require_approval: { never: { tool_names: ["echo"] } } })];
  const { response: asked } = await respond({ tools, store: true }, true);
  expect(types(asked)).toEqual(["mcp_list_tools", "mcp_call", "mcp_approval_request"]);
  const { id } = asked.output.at(-1)! as { id: string };
  const answer = { type: "mcp_approval_response" as const, approval_request_id: id, approve: true };
  at.up.setRoutes(model());
  await expect(
    respond({ tools, previous_response_id: asked.id, input: [answer] }, false),
  ).rejects.toMatchObject({ status: 400, param: "previous_response_id" });
  expect(calls("add")).toEqual([]);
  const input = [{ role: "user", content: "x" }, ...asked.output, answer];
  const { response } = await respond({ tools, input: input as never }, false);
  expect(response.output_text).toContain("3");
  expect(calls("add")).toHaveLength(1);
});

it("by a response's ID, all approvals of a turn are answered together, or no call is made", async () => {
  const turn: [string, object][] = [
    ["calc__add", { a: 1, b: 2 }],
    ["calc__echo", { x: 1 }],
    ["calc__drop_table", {}],
  ];
  at.up.setRoutes(model(turn));
  const tools = [server({ require_approval: "always" })];
  const { response: asked } = await respond({ tools, store: true }, false);
  expect(types(asked).slice(1)).toEqual(turn.map(() => "mcp_approval_request"));
  const answers = asked.output.slice(1).map((item, at) => ({
    type: "mcp_approval_response" as const,
    approval_request_id: (item as { id: string }).id,
    approve: at < 2,
  }));
  at.up.setRoutes(model());
  const next = (input: object[]) =>
    respond({ tools, previous_response_id: asked.id, input: input as never, store: true }, false);
  for (const kept of [1, 2, 3, 4, 5, 6]) {
    const some = answers.filter((_, at) => kept & (1 << at));
    await expect(next(some)).rejects.toMatchObject({
      status: 400,
      code: "missing_approval",
      param: "input",
      message: expect.stringMatching(
        new RegExp(
          `"(?:${turn
            .filter((_, at) => !(kept & (1 << at)))
            .map(([name]) => name.slice(6))
            .join("|")})"`,
        ),
      ),
    });
  }
  expect(at.server.received.filter(({ method }) => method === "tools/call")).toEqual([]);
  const { response } = await next(answers);
  expect(types(response).slice(0, 2)).toEqual(["mcp_list_tools", "mcp_call"]);
  expect([calls("add").length, calls("echo").length, calls("drop_table").length]).toEqual([
    1, 1, 0,
  ]);
});

it("by a response's ID, an approved call is not made without the result of the client's call", async () => {
  at.up.setRoutes(
    model([
      ["calc__add", { a: 1, b: 2 }],
      ["own", {}],
    ]),
  );
  const own = { type: "function" as const, name: "own", parameters: {}, strict: false };
  const tools = [own, server({ require_approval: "always" })];
  const { response: asked } = await respond({ tools, store: true }, false);
  const request = asked.output.find(({ type }) => type === "mcp_approval_request")!;
  const mine = asked.output.find(({ type }) => type === "function_call") as { call_id: string };
  const approval = {
    type: "mcp_approval_response",
    approval_request_id: request.id,
    approve: true,
  };
  const result = { type: "function_call_output", call_id: mine.call_id, output: "mine" };
  at.up.setRoutes(model());
  const next = (input: object[]) =>
    respond({ tools, previous_response_id: asked.id, input: input as never, store: true }, false);
  await expect(next([approval])).rejects.toMatchObject({
    status: 400,
    code: "missing_tool_output",
    message: expect.stringContaining(mine.call_id),
  });
  expect(calls("add")).toEqual([]);
  await next([approval, result]);
  expect(calls("add")).toHaveLength(1);
});

it("the path of a request may end with a slash", async () => {
  at.up.setRoutes(model([["calc__add", { a: 1, b: 2 }]]));
  const got = await fetch(`${at.gateway.url}/v1/responses/`, {
    method: "POST",
    headers: { authorization: `Bearer ${KEYS.all}`, "content-type": "application/json" },
    body: JSON.stringify({ model: MODELS[0]!, input: "x", tools: [server()] }),
  });
  expect([got.status, ((await got.json()) as Response).status]).toEqual([200, "completed"]);
});

it("other servers pass to the provider, and a URL of this gateway is one of its servers", async () => {
  at.up.setRoutes(model());
  const remote = server({ server_label: "far", server_url: "https://mcp.example.com/mcp" });
  const own = server({ server_url: `${at.gateway.url}/mcp/sums`, authorization: "secret" });
  const { response } = await respond({ tools: [remote, own] }, false);
  const [sent] = sentBodies(at.up);
  expect(sent.tools).toEqual([remote, expect.objectContaining({ name: "calc__math__add" })]);
  expect(JSON.stringify(response)).not.toContain("secret");
});
