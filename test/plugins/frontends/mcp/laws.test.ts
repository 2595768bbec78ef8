// Laws of MCP, with generated servers and clients, without a network.
import fc from "fast-check";
import { expect, it } from "vitest";
import { createTestContext } from "tollgate/testing";
import type { Context, RequestHead, RouteResponse } from "tollgate/plugin";
import mcp from "../../../../plugins/frontends/mcp.ts";
import { turnEventLoop, until } from "../../../kit/wait.ts";

type Json = Record<string, any>;

const META = "io.modelcontextprotocol/";
const MODERN = "2026-07-28";
const TOKEN = "tg_client-token-of-the-test";

/** An upstream server in memory. */
interface MemoryServer {
  readonly isModern: boolean;
  readonly tools: readonly Json[];
  call(params: Json, signal: AbortSignal): Response | Promise<Response>;
}

const rpc = (id: unknown, result: Json, headers: Json = {}, status = 200) =>
  new Response(JSON.stringify({ jsonrpc: "2.0", id, ...result }), {
    status,
    headers: { "content-type": "application/json", ...headers },
  });

async function answer(server: MemoryServer, init: Json): Promise<Response> {
  const body = init["body"] === undefined ? {} : (JSON.parse(String(init["body"])) as Json);
  const { id, method, params = {} } = body as { id?: unknown; method?: string; params?: Json };
  if (init["method"] !== "POST") return new Response(null, { status: 405 });
  if (!server.isModern) {
    if (method === "initialize")
      return rpc(
        id,
        {
          result: {
            protocolVersion: "2025-11-25",
            capabilities: { tools: {}, prompts: {}, resources: {}, completions: {} },
            serverInfo: { name: "memory", version: "1" },
            instructions: server.tools.map(({ name }) => name).join(", "),
          },
        },
        { "mcp-session-id": "session" },
      );
    if (init["headers"]["mcp-session-id"] === undefined)
      return rpc(id, { error: { code: -32_000, message: "no session" } }, {}, 400);
    if (id === undefined || method === undefined) return new Response(null, { status: 202 });
  } else if (method === "server/discover")
    return rpc(id, {
      result: {
        resultType: "complete",
        supportedVersions: [MODERN],
        capabilities: { tools: {}, prompts: {}, resources: {}, completions: {} },
        instructions: server.tools.map(({ name }) => name).join(", "),
      },
    });
  if (method === "tools/list")
    return rpc(id, { result: { resultType: "complete", tools: server.tools } });
  if (method === "tools/call") {
    const response = await server.call(params, init["signal"] as AbortSignal);
    const text = await response.text();
    return new Response(text.replaceAll('"ID"', JSON.stringify(id)), response);
  }
  const names = server.tools.map(({ name }) => String(name));
  // Any other answer of the server names all its tools.
  return rpc(id, {
    error: { code: -32_602, message: `Use ${names.join(" or ")}.`, data: { names } },
  });
}

async function startFrontend(
  servers: Readonly<Record<string, MemoryServer>>,
  openCall?: Context["openCall"],
) {
  const sent: { headers: Json; body: string; unsettled: number }[] = [];
  const test = createTestContext({
    id: "frontends.mcp",
    ...(openCall && { openCall }),
    fetch: async (url, init = {}) => {
      const name = new URL(url).hostname.split(".")[0]!;
      sent.push({
        headers: init.headers as Json,
        body: String(init.body ?? ""),
        unsettled: test.openedCalls.filter(({ result }) => !result).length,
      });
      return answer(servers[name]!, init as Json);
    },
  });
  const options = {
    servers: Object.fromEntries(
      Object.keys(servers).map((name) => [
        name,
        { url: `https://${name}.example/mcp`, timeout_s: 5, zero_retention: false },
      ]),
    ),
    sets: {},
    accept: ["bearer"],
    list_ttl_s: 60,
  };
  const frontend = await mcp.setup(options as never, test.ctx);
  const [route] = frontend.routes;
  const post = async (
    body: Json,
    of: { path?: string; tools?: readonly string[]; headers?: Json; signal?: AbortSignal },
  ): Promise<{ text: string; headers: Json }> => {
    const x = {
      id: "request",
      headers: { accept: "application/json, text/event-stream", ...of.headers },
      params: of.path === undefined ? {} : { name: of.path },
      signal: of.signal ?? new AbortController().signal,
      privacy: "off",
      identity: { id: "key", tools: of.tools },
      setRpcOperation() {},
    } as unknown as RequestHead;
    const handle = (
      route as unknown as { handle: (x: RequestHead, body: Buffer) => Promise<RouteResponse> }
    ).handle;
    const response = await handle(x, Buffer.from(JSON.stringify(body)));
    const { body: got, headers = {} } = response;
    let text = "";
    if (got && typeof got === "object" && Symbol.asyncIterator in got)
      for await (const piece of got as AsyncIterable<string>) text += piece;
    else text = JSON.stringify(got ?? "");
    return { text, headers: headers as Json };
  };
  return { test, sent, post };
}

function modernMessage(method: string, params: Json): { body: Json; headers: Json } {
  const name = params["name"] ?? params["uri"];
  const meta = {
    [`${META}protocolVersion`]: MODERN,
    [`${META}clientCapabilities`]: {},
    [`${META}logLevel`]: "debug",
  };
  return {
    body: { jsonrpc: "2.0", id: 1, method, params: { ...params, _meta: meta } },
    headers: {
      "mcp-protocol-version": MODERN,
      "mcp-method": method,
      ...(typeof name === "string" && { "mcp-name": name }),
      authorization: `Bearer ${TOKEN}`,
      cookie: TOKEN,
    },
  };
}

const toolName = fc.stringMatching(/^[a-z]{3,8}_[a-z]{3,8}$/);

/** Responses of a server to a call. `ID` is replaced by the ID of the request. */
const behaviors: Readonly<Record<string, (names: readonly string[]) => Response>> = {
  ok: () =>
    rpc("ID", { result: { resultType: "complete", content: [{ type: "text", text: "done" }] } }),
  error: (names) =>
    rpc("ID", {
      error: { code: -32_602, message: `No. Try ${names.join(", ")}`, data: { names } },
    }),
  status: (names) => new Response(names.join(), { status: 500 }),
  notFound: (names) => new Response(names.join(), { status: 404 }),
  redirect: () =>
    new Response(null, { status: 302, headers: { location: "https://evil.example/" } }),
  text: (names) => new Response(names.join(), { headers: { "content-type": "text/html" } }),
  broken: (names) =>
    new Response(names.join(), { headers: { "content-type": "application/json" } }),
  shape: (names) => rpc("ID", { result: { resultType: "complete", names } }),
  otherId: () => rpc("other", { result: { resultType: "complete", content: [] } }),
  deep: () => rpc("ID", { result: { content: JSON.parse("[".repeat(200) + "]".repeat(200)) } }),
  input: () =>
    rpc("ID", { result: { resultType: "input_required", requestState: "server-state" } }),
  streamed: (names) =>
    new Response(
      `data: ${JSON.stringify({ jsonrpc: "2.0", method: "notifications/message", params: { level: "info", data: names.join(" ") } })}\n\n` +
        `data: ${JSON.stringify({ jsonrpc: "2.0", id: "ID", result: { content: [] } })}\n\n`,
      { headers: { "content-type": "text/event-stream" } },
    ),
  cut: (names) =>
    new Response(
      `data: ${JSON.stringify({ jsonrpc: "2.0", method: "notifications/progress", params: { message: names.join(" ") } })}\n\n`,
      { headers: { "content-type": "text/event-stream" } },
    ),
};

const world = fc.record({
  names: fc.uniqueArray(toolName, { minLength: 2, maxLength: 6 }),
  visible: fc.nat(5),
  isModern: fc.boolean(),
  behavior: fc.constantFrom(...Object.keys(behaviors)),
  isSession: fc.boolean(),
  path: fc.constantFrom(undefined, "one"),
});

it("no name of a tool that a key may not call leaves, and no client token reaches a server", async () => {
  await fc.assert(
    fc.asyncProperty(world, async ({ names, visible, isModern, behavior, isSession, path }) => {
      const allowed = names[visible % names.length]!;
      const hidden = names.filter((name) => name !== allowed);
      const tools = names.map((name) => ({
        name,
        description: `Like ${names.join(", ")}.`,
        inputSchema: { type: "object", properties: { a: { description: names.join(" or ") } } },
      }));
      const call = () => behaviors[behavior]!(names);
      const { test, sent, post } = await startFrontend({
        one: { isModern, tools, call },
        two: { isModern, tools: [], call },
      });
      await using _ = test;
      const permitted = [`one/${allowed}`];
      const prefix = path === undefined ? "one__" : "";
      const requests: [string, Json][] = [
        ["server/discover", {}],
        ["tools/list", {}],
        ["prompts/list", {}],
        ["resources/list", {}],
        ["resources/templates/list", {}],
        ["tools/call", { name: prefix + allowed, arguments: {} }],
        ["tools/call", { name: `${prefix}unknown_name` }],
        ["prompts/get", { name: `${prefix}unknown_name` }],
        ["resources/read", { uri: "one+file:///x" }],
        ["completion/complete", { ref: { type: "ref/prompt", name: "x" }, argument: {} }],
        ["completion/complete", { ref: { type: "ref/resource", uri: "one+x" }, argument: {} }],
        ["logging/setLevel", { level: "debug" }],
      ];
      let session: Json | undefined;
      const where = { tools: permitted, ...(path !== undefined && { path }) };
      if (isSession) {
        const params = {
          protocolVersion: "2025-11-25",
          capabilities: {},
          clientInfo: { name: "c" },
        };
        const opened = await post(
          { jsonrpc: "2.0", id: 0, method: "initialize", params },
          { ...where, headers: { authorization: `Bearer ${TOKEN}` } },
        );
        for (const name of hidden) expect(opened.text).not.toContain(name);
        session = { "mcp-session-id": opened.headers["mcp-session-id"], cookie: TOKEN };
      }
      for (const [method, params] of requests) {
        const message = modernMessage(method, params);
        const got = session
          ? await post({ jsonrpc: "2.0", id: 1, method, params }, { ...where, headers: session })
          : await post(message.body, { ...where, headers: message.headers });
        for (const name of hidden)
          expect([method, got.text]).toEqual([method, expect.not.stringContaining(name)]);
      }
      for (const { headers, body } of sent)
        expect(JSON.stringify([headers, body])).not.toContain(TOKEN);
      expect(sent.filter(({ body }) => hidden.some((name) => body.includes(name)))).toEqual([]);
    }),
    { numRuns: 60 },
  );
});

it.each(["ok", "streamed", "error", "input"])(
  "a client receives the result '%s' after the call was settled",
  async (step) => {
    const order: string[] = [];
    const { test, post } = await startFrontend(
      {
        one: {
          isModern: true,
          tools: [{ name: "run_it", inputSchema: { type: "object" } }],
          call: () => behaviors[step]!(["run_it"]),
        },
      },
      async () => ({
        id: "call",
        async settle() {
          await turnEventLoop(20);
          order.push("settled");
        },
      }),
    );
    await using _ = test;
    const { body, headers } = modernMessage("tools/call", { name: "run_it" });
    await post(body, { path: "one", headers });
    order.push("received");
    expect(order).toEqual(["settled", "received"]);
  },
);

it("each call of a tool has a row before it leaves, and the row is settled", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.constantFrom(...Object.keys(behaviors), "hang"), { minLength: 1, maxLength: 6 }),
      fc.boolean(),
      async (steps, isModern) => {
        let at = 0;
        let abort: AbortController | undefined;
        const { test, sent, post } = await startFrontend({
          one: {
            isModern,
            tools: [{ name: "run_it", inputSchema: { type: "object" } }],
            call: (_, signal) => {
              const step = steps[at]!;
              if (step !== "hang") return behaviors[step]!(["run_it"]);
              queueMicrotask(() => abort?.abort());
              return new Promise((_resolve, reject) => {
                signal.addEventListener("abort", () => reject(new Error("aborted")), {
                  once: true,
                });
              });
            },
          },
        });
        await using _ = test;
        for (at = 0; at < steps.length; at++) {
          abort = new AbortController();
          const { body, headers } = modernMessage("tools/call", { name: "run_it" });
          await post(body, { path: "one", headers, signal: abort.signal });
          // Each request of the client has one row, also if the call is sent again in another session.
          expect(test.openedCalls).toHaveLength(at + 1);
          // A call that its client has left is settled a moment later.
          await until(() => test.openedCalls[at]!.result !== undefined);
        }
        const calls = sent.filter(({ body }) => body.includes('"tools/call"'));
        expect(calls.length).toBeGreaterThanOrEqual(steps.length);
        for (const { unsettled } of calls) expect(unsettled).toBe(1);
        for (const [n, { result }] of test.openedCalls.entries()) {
          expect([steps[n], result]).toEqual([
            steps[n],
            expect.objectContaining({ state: expect.any(String) }),
          ]);
          const billed = {
            ok: "exact",
            streamed: "exact",
            error: "void",
            input: "void",
            redirect: "void",
          };
          const expected = billed[steps[n] as keyof typeof billed];
          if (expected !== undefined)
            expect([steps[n], result!.state]).toEqual([steps[n], expected]);
          if (steps[n] === "hang")
            expect(result).toEqual({ outcome: "canceled", state: "estimated" });
        }
      },
    ),
    { numRuns: 60 },
  );
});
