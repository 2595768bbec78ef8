// MCP over the gateway: clients and servers in the newest revision and in one with sessions.
import { describe, expect, it } from "vitest";
import { MODERN, openSession, send, sendModern } from "./client.ts";
import type { FakeServerOptions } from "./fake-server.ts";
import { all, namesOf, some, start, textOf } from "./gateway.ts";

describe.each(["2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26"] as const)(
  "a server in %s",
  (revision) => {
    it("serves a client of the newest revision", async () => {
      const { url } = await start({ one: { revision, tools: ["echo", "add"] } });
      const client = { url, key: all };
      const discovered = await sendModern(client, "server/discover");
      expect(discovered.result).toMatchObject({
        resultType: "complete",
        cacheScope: "private",
        capabilities: { tools: { listChanged: true } },
      });
      expect(discovered.result!["supportedVersions"]).toContain(MODERN);
      const list = await sendModern(client, "tools/list");
      expect(namesOf(list)).toEqual(["one__add", "one__echo"]);
      expect(list.result).toMatchObject({ cacheScope: "private", resultType: "complete" });
      expect(Number.isInteger(list.result!["ttlMs"])).toBe(true);
      const called = await sendModern(client, "tools/call", {
        name: "one__echo",
        arguments: { text: "hi" },
      });
      expect(textOf(called)).toBe('{"text":"hi"}');
      expect(called.result!["resultType"]).toBe("complete");
    });

    it.each(["2025-11-25", "2025-06-18", "2025-03-26"])(
      "serves a client with a session of %s",
      async (own) => {
        const { url } = await start({ one: { revision, tools: ["echo", "add"] } });
        const client = await openSession({ url: `${url}/one`, key: all }, own);
        expect(client.opened.result).toMatchObject({ protocolVersion: own });
        expect(
          (await client.post({ jsonrpc: "2.0", method: "notifications/initialized" })).status,
        ).toBe(202);
        const list = await client.send("tools/list");
        expect(namesOf(list)).toEqual(["add", "echo"]);
        expect(list.result).not.toHaveProperty("cacheScope");
        const called = await client.send("tools/call", { name: "echo", arguments: { text: "hi" } });
        expect(textOf(called)).toBe('{"text":"hi"}');
        expect((await client.send("ping")).result).toEqual({});
      },
    );

    it("forwards progress before the result", async () => {
      const { url } = await start({
        one: {
          revision,
          call: ({ send: notify, params }) => {
            const { progressToken } = params["_meta"] as { progressToken: string };
            notify({
              jsonrpc: "2.0",
              method: "notifications/progress",
              params: { progressToken, progress: 1 },
            });
            return { content: [{ type: "text", text: "done" }] };
          },
        },
      });
      const params = { name: "echo", _meta: { progressToken: "token" } };
      const called = await sendModern({ url: `${url}/one`, key: all }, "tools/call", params);
      expect(called.messages).toMatchObject([
        { method: "notifications/progress", params: { progressToken: "token", progress: 1 } },
      ]);
      expect(textOf(called)).toBe("done");
      const client = await openSession({ url: `${url}/one`, key: all });
      const again = await client.send("tools/call", params);
      expect(again.messages).toHaveLength(1);
    });
  },
);

it("a key sees and calls its tools only, and an unknown tool gets the same error", async () => {
  const { url, servers, gateway } = await start({
    one: { revision: MODERN, tools: ["echo", "drop_table"], instructions: "Use drop_table." },
    two: { revision: "2025-11-25", tools: ["read"] },
  });
  const client = { url, key: some };
  expect(namesOf(await sendModern(client, "tools/list"))).toEqual(["one__echo"]);
  const denied = await sendModern(client, "tools/call", { name: "one__drop_table" });
  const unknown = await sendModern(client, "tools/call", { name: "one__drop_tables" });
  expect(denied.error).toEqual({ code: -32_602, message: "Unknown tool: one__drop_table" });
  expect(unknown.error).toEqual({ code: -32_602, message: "Unknown tool: one__drop_tables" });
  const one = { url: `${url}/one`, key: some };
  expect((await sendModern(one, "server/discover")).text).not.toContain("drop_table");
  const hidden = await sendModern({ url: `${url}/two`, key: some }, "tools/list");
  const missing = await sendModern({ url: `${url}/none`, key: some }, "tools/list");
  expect([hidden.status, hidden.error]).toEqual([404, missing.error]);
  expect(servers["two"]!.received).toEqual([]);
  expect(servers["one"]!.received.filter(({ method }) => method === "tools/call")).toEqual([]);
  expect(gateway.output()).not.toContain("tg_");
});

it("an error of a server contains no hidden names", async () => {
  const { url } = await start({
    one: {
      revision: MODERN,
      tools: ["echo", "drop_table"],
      call: () => ({ error: { code: -32_602, message: "No. Did you mean drop_table?" } }),
    },
  });
  const answer = await sendModern({ url, key: some }, "tools/call", { name: "one__echo" });
  expect(answer.error).toEqual({ code: -32_602, message: "No. Did you mean [tool]?" });
});

it("a URL that a server asks its user to open contains no hidden names", async () => {
  const { url } = await start({
    one: {
      revision: MODERN,
      tools: ["echo", "drop_table"],
      call: () => ({
        error: {
          code: -32_042,
          message: "Permit drop_table.",
          data: {
            elicitations: [
              {
                mode: "url",
                elicitationId: "1",
                url: "https://one.example/",
                message: "drop_table",
              },
            ],
          },
        },
      }),
    },
  });
  for (const capabilities of [{}, { elicitation: { url: {} } }]) {
    const client = { url, key: some, capabilities };
    const answer = await sendModern(client, "tools/call", { name: "one__echo" });
    expect(answer.text).toContain("[tool]");
    expect(answer.text).not.toContain("drop_table");
    const session = await openSession(client);
    const again = await session.send("tools/call", { name: "one__echo" });
    expect([again.error?.code, again.error?.message]).toEqual([-32_042, "Permit [tool]."]);
    expect(again.text).not.toContain("drop_table");
  }
});

it("no client's key is sent to a server, and the operator's token is", async () => {
  const { url, servers } = await start(
    { one: { revision: MODERN }, two: { revision: "2025-11-25" } },
    { server: { one: { auth: { type: "token", token: "operator-token" } } } },
  );
  await sendModern({ url, key: all }, "tools/call", { name: "one__echo" });
  await sendModern({ url, key: all }, "tools/call", { name: "two__echo" });
  for (const { headers, body } of [...servers["one"]!.received, ...servers["two"]!.received])
    expect(JSON.stringify([headers, body])).not.toContain(all);
  for (const { headers } of servers["one"]!.received)
    expect(headers.authorization).toBe("Bearer operator-token");
});

it("a request with zero data retention reaches only servers that declare it", async () => {
  const offers: FakeServerOptions = {
    revision: MODERN,
    prompts: [{ name: "greet" }],
    resources: [{ uri: "file:///a", name: "a" }],
  };
  const { url, servers } = await start(
    { one: offers, two: offers },
    { server: { two: { zero_retention: true } }, middleware: "\n  - zdr" },
  );
  const requests: [string, object][] = [
    ["tools/call", { name: "echo" }],
    ["prompts/get", { name: "greet" }],
    ["resources/read", { uri: "file:///a" }],
    ["completion/complete", { ref: { type: "ref/prompt", name: "greet" }, argument: {} }],
  ];
  const change = { headers: { "service-zdr": "required" } };
  for (const [method, params] of requests) {
    const denied = await sendModern({ url: `${url}/one`, key: all }, method, params, change);
    expect([method, denied.status, denied.error]).toEqual([
      method,
      403,
      {
        code: -32_000,
        message: "mcp:one is not known to have zero data retention, which this request requires.",
        data: { type: "privacy", code: "zdr_unavailable" },
      },
    ]);
    const { error } = await sendModern({ url: `${url}/two`, key: all }, method, params, change);
    expect([method, error?.data?.["code"]]).toEqual([method, undefined]);
  }
  const subscribe = { notifications: { resourceSubscriptions: ["file:///a"] } };
  const denied = await sendModern(
    { url: `${url}/one`, key: all },
    "subscriptions/listen",
    subscribe,
    change,
  );
  expect([denied.status, denied.error?.data]).toEqual([
    403,
    { type: "privacy", code: "zdr_unavailable" },
  ]);
  const session = await openSession({ url: `${url}/one`, key: all });
  const inSession = (body: object | undefined, headers: object) =>
    fetch(`${url}/one`, {
      method: body ? "POST" : "GET",
      headers: {
        authorization: `Bearer ${all}`,
        "mcp-session-id": session.id,
        "content-type": "application/json",
        accept: "application/json, text/event-stream",
        ...headers,
      },
      ...(body && { body: JSON.stringify({ jsonrpc: "2.0", id: 1, ...body }) }),
    });
  const message = { method: "resources/subscribe", params: { uri: "file:///a" } };
  expect((await inSession(message, change.headers)).status).toBe(403);
  expect((await inSession(message, {})).status).toBe(200);
  // The resource was subscribed to without the requirement, which the stream of events has.
  expect((await inSession(undefined, change.headers)).status).toBe(403);
  expect(servers["one"]!.received.map(({ method }) => method)).not.toContain(
    "subscriptions/listen",
  );
  const sent = (name: string) => {
    const received = new Set(servers[name]!.received.map(({ method }) => method));
    return requests.map(([method]) => method).filter((method) => received.has(method));
  };
  expect(sent("one")).toEqual([]);
  expect(sent("two")).toHaveLength(requests.length);
});

it("headers that differ from the body are rejected before anything is sent", async () => {
  const { url, servers } = await start({ one: { revision: MODERN } });
  const client = { url, key: all };
  const call = (headers: object, body = {}) =>
    sendModern(client, "tools/call", { name: "one__echo" }, { headers, body });
  for (const headers of [
    { "mcp-method": "tools/list" },
    { "mcp-name": "one__add" },
    { "mcp-name": "=?base64?!?=" },
    { "mcp-protocol-version": "2025-11-26" },
  ]) {
    const { status, error } = await call(headers);
    expect([status, error?.code]).toEqual([400, -32_020]);
  }
  const encoded = `=?base64?${Buffer.from("one__echo").toString("base64")}?=`;
  expect((await call({ "mcp-name": encoded })).status).toBe(200);
  const meta = { "io.modelcontextprotocol/protocolVersion": "1900-01-01" };
  const old = await sendModern(
    client,
    "tools/list",
    { _meta: meta },
    { headers: { "mcp-protocol-version": "1900-01-01" } },
  );
  expect([old.status, old.error?.code]).toEqual([400, -32_022]);
  expect(old.error!.data!["supported"]).toContain(MODERN);
  const bare = await sendModern(client, "tools/list", {}, { body: { params: {} } });
  expect([bare.status, bare.error?.code]).toEqual([400, -32_602]);
  const unknown = await sendModern(client, "tools/delete");
  expect([unknown.status, unknown.error?.code]).toEqual([404, -32_601]);
  expect(servers["one"]!.received.filter(({ method }) => method === "tools/call")).toHaveLength(1);
});

it("a message has as many JSON values as the config allows", async () => {
  const { url } = await start(
    { one: { revision: MODERN } },
    { yaml: "bounds: { json_values: 50 }" },
  );
  const call = (values: number) =>
    sendModern({ url: `${url}/one`, key: all }, "tools/call", {
      name: "echo",
      arguments: { list: Array.from({ length: values }, () => 0) },
    });
  expect((await call(20)).status).toBe(200);
  const rejected = await call(60);
  expect([rejected.status, rejected.error?.code]).toEqual([400, -32_600]);
  expect(rejected.error!.message).toContain("more than 50 JSON values");
});

it("bad messages get the errors of JSON-RPC", async () => {
  const { url } = await start({ one: { revision: MODERN } });
  const post = (body: string) => send({ url, key: all, headers: {}, body });
  const codes: [string, number][] = [
    ["{", -32_700],
    ["[]", -32_600],
    ['{"jsonrpc":"1.0"}', -32_600],
    ['{"jsonrpc":"2.0","id":{},"method":"ping"}', -32_600],
    ['{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}', -32_600],
    ["[".repeat(100_000), -32_600],
    ['{"jsonrpc":"2.0","id":1,"method":"ping"}', -32_000],
  ];
  for (const [body, code] of codes) {
    const { status, error } = await post(body);
    expect([body.slice(0, 50), status, error?.code]).toEqual([body.slice(0, 50), 400, code]);
  }
  const website = await send({
    url,
    key: all,
    headers: { origin: "https://evil.example" },
    body: '{"jsonrpc":"2.0","id":1,"method":"ping"}',
  });
  expect(website.status).toBe(403);
  expect((await send({ url, key: "tg_wrong", headers: {}, body: "{}" })).status).toBe(401);
});

it("a session belongs to one key and path, and ends", async () => {
  const { url } = await start({ one: { revision: "2025-11-25" } });
  const client = await openSession({ url, key: all });
  const steal = (key: string, path = "") =>
    send({
      url: url + path,
      key,
      headers: { "mcp-session-id": client.id },
      body: { jsonrpc: "2.0", id: 1, method: "ping" },
    });
  expect((await steal(all)).status).toBe(200);
  expect((await steal(some)).status).toBe(404);
  expect((await steal(all, "/one")).status).toBe(404);
  const headers = { authorization: `Bearer ${all}`, "mcp-session-id": client.id };
  expect((await fetch(url, { method: "DELETE", headers })).status).toBe(200);
  expect((await steal(all)).status).toBe(404);
});

it("a condition for an account applies to the accounts under it", async () => {
  const { url } = await start(
    { one: { revision: MODERN } },
    {
      server: {
        one: {
          conditions: [
            {
              tools: ["echo"],
              accounts: ["acme"],
              arguments: { type: "object", properties: { owner: { const: "acme" } } },
            },
          ],
        },
      },
      keys: ", account: research",
      yaml: "accounts: { acme: {}, research: { parent: acme } }",
    },
  );
  const call = (key: string, owner: string) =>
    sendModern({ url: `${url}/one`, key }, "tools/call", { name: "echo", arguments: { owner } });
  expect(textOf(await call(some, "acme"))).toBe('{"owner":"acme"}');
  expect((await call(some, "other")).error).toMatchObject({
    code: -32_602,
    data: { code: "arguments_not_allowed" },
  });
  expect(textOf(await call(all, "other"))).toBe('{"owner":"other"}');
});
