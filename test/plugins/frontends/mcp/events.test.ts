// Streams of events, cancellation, and the response that is kept open, over the gateway.
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { ClientReply, type FinalMessage } from "../../../../plugins/frontends/mcp/client-reply.ts";
import { until } from "../../../kit/wait.ts";
import { MODERN, openSession, sendModern } from "./client.ts";
import { all, some, start } from "./gateway.ts";

type Json = Record<string, any>;

/** Opens `subscriptions/listen`. The stream ends with `close`. */
async function listen(client: { url: string; key: string }, notifications: Json) {
  const messages: Json[] = [];
  const aborter = new AbortController();
  const ended = sendModern(
    { ...client, onMessage: (message) => void messages.push(message) },
    "subscriptions/listen",
    { notifications },
    { signal: aborter.signal },
  ).catch(() => undefined);
  await until(() => messages.length > 0);
  return {
    messages,
    async close() {
      aborter.abort();
      await ended;
    },
  };
}

const echo = (description: string): Json => ({
  name: "echo",
  description,
  inputSchema: { type: "object" },
});

describe.each(["2026-07-28", "2025-11-25"] as const)("a server in %s", (revision) => {
  it("reports a change of a list only to clients whose part of it changed", async () => {
    const { url, servers } = await start({ one: { revision, tools: [echo("a")] } });
    const server = servers["one"]!;
    const restricted = await listen({ url, key: some }, { toolsListChanged: true });
    const whole = await listen({ url, key: all }, { toolsListChanged: true });
    expect(restricted.messages[0]).toEqual({
      jsonrpc: "2.0",
      method: "notifications/subscriptions/acknowledged",
      params: {
        notifications: { toolsListChanged: true },
        _meta: { "io.modelcontextprotocol/subscriptionId": expect.any(Number) },
      },
    });
    server.tools = [echo("a"), "drop_table"];
    server.emit("notifications/tools/list_changed");
    await until(() => whole.messages.length > 1);
    server.tools = [echo("b"), "drop_table"];
    server.emit("notifications/tools/list_changed");
    await until(() => whole.messages.length > 2 && restricted.messages.length > 1);
    for (const { messages, count } of [
      { ...restricted, count: 1 },
      { ...whole, count: 2 },
    ])
      expect(messages.slice(1).map(({ method }) => method)).toEqual(
        Array.from({ length: count }, () => "notifications/tools/list_changed"),
      );
    const [first, second] = restricted.messages;
    expect(second!["params"]["_meta"]).toEqual(first!["params"]["_meta"]);
    await restricted.close();
    await whole.close();
  });

  it("reports changes of the resources that were subscribed to", async () => {
    const resources = [{ uri: "file:///a", name: "a" }];
    const { url, servers } = await start({ one: { revision, resources } });
    const wanted = { resourceSubscriptions: ["one+file:///a", "two+file:///a"] };
    const stream = await listen({ url, key: all }, wanted);
    expect(stream.messages[0]!["params"]["notifications"]).toEqual({
      resourceSubscriptions: ["one+file:///a"],
    });
    for (const uri of ["file:///b", "file:///a"])
      servers["one"]!.emit("notifications/resources/updated", { uri });
    await until(() => stream.messages.length > 1);
    expect(stream.messages.slice(1)).toMatchObject([
      { method: "notifications/resources/updated", params: { uri: "one+file:///a" } },
    ]);
    await stream.close();
    const denied = await listen({ url, key: some }, wanted);
    expect(denied.messages[0]!["params"]["notifications"]).toEqual({});
    await denied.close();
  });

  it("receives the cancellation of a call, which is settled", async () => {
    let calls = 0;
    let closed = 0;
    const { url, servers, gateway } = await start({
      one: {
        revision,
        call: ({ res }) => {
          calls++;
          res.on("close", () => void closed++);
          return undefined;
        },
      },
    });
    const aborter = new AbortController();
    const client = { url: `${url}/one`, key: all };
    const change = { signal: aborter.signal };
    const left = sendModern(client, "tools/call", { name: "echo" }, change).catch(() => "left");
    await until(() => calls === 1);
    aborter.abort();
    expect(await left).toBe("left");
    const session = await openSession(client);
    const other = await openSession(client);
    const canceled = session.send("tools/call", { name: "echo" }, { id: "call" });
    await until(() => calls === 2);
    const cancel = { jsonrpc: "2.0", method: "notifications/cancelled" };
    const params = { requestId: "call" };
    // A session cannot cancel the requests of another one.
    expect((await other.post({ ...cancel, params })).status).toBe(202);
    expect((await session.post({ ...cancel, params: { requestId: "other" } })).status).toBe(202);
    expect(closed).toBeLessThan(2);
    expect((await session.post({ ...cancel, params })).status).toBe(202);
    await canceled;
    await until(() => closed === 2);
    if (revision !== MODERN) {
      const { received } = servers["one"]!;
      const sent = received.filter(({ method }) => method === "tools/call");
      const told = () => received.filter(({ method }) => method === "notifications/cancelled");
      await until(() => told().length === 2);
      expect(told().map(({ body }) => body["params"]["requestId"])).toEqual(
        sent.map(({ body }) => body["id"]),
      );
    }
    const settled = async () => {
      const { items } = (await gateway.ask("ledger.entries", {})) as { items: Json[] };
      return items.filter(({ kind }) => kind === "settle");
    };
    await until(async () => (await settled()).length === 2);
    expect((await settled()).map(({ outcome, state }) => [outcome, state])).toEqual([
      ["canceled", "estimated"],
      ["canceled", "estimated"],
    ]);
  });
});

describe("a response that takes long", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  const final: FinalMessage = { status: 200, body: { jsonrpc: "2.0", id: 1, result: {} } };
  const started = (canStream: boolean) => {
    const reply = new ClientReply({ canStream, signal: new AbortController().signal });
    const { promise, resolve } = Promise.withResolvers<FinalMessage>();
    return { reply, response: reply.respond(() => promise), finish: () => resolve(final) };
  };

  it("becomes a stream after 10 s, with a comment each 15 s", async () => {
    const { reply, response, finish } = started(true);
    await vi.advanceTimersByTimeAsync(10_000);
    const { status, headers, body } = await response;
    expect([status, headers]).toEqual([
      200,
      expect.objectContaining({ "content-type": "text/event-stream" }),
    ]);
    const pieces = (body as AsyncIterable<string>)[Symbol.asyncIterator]();
    for (let n = 0; n < 3; n++) {
      const next = pieces.next();
      await vi.advanceTimersByTimeAsync(14_999);
      let isSent = false;
      void next.then(() => (isSent = true));
      await vi.advanceTimersByTimeAsync(0);
      expect(isSent).toBe(false);
      await vi.advanceTimersByTimeAsync(1);
      expect(await next).toEqual({ done: false, value: ": keep-alive\n\n" });
    }
    const message = pieces.next();
    reply.notify("notifications/progress", { progress: 1 });
    expect((await message).value).toContain('"notifications/progress"');
    const last = pieces.next();
    finish();
    expect((await last).value).toContain('"result":{}');
    expect(await pieces.next()).toMatchObject({ done: true });
    expect(vi.getTimerCount()).toBe(0);
  });

  it("remains JSON for a client that accepts no stream", async () => {
    const { response, finish } = started(false);
    await vi.advanceTimersByTimeAsync(60_000);
    finish();
    expect(await response).toMatchObject({ status: 200, body: final.body });
    expect(vi.getTimerCount()).toBe(0);
  });
});
