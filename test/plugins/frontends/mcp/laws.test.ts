// Laws of MCP, with generated servers and clients, without a network.
import fc from "fast-check";
import { expect, it } from "vitest";
import { turnEventLoop, until } from "../../../kit/wait.ts";
import {
  modernMessage,
  rpc,
  SESSION,
  startFrontend,
  TOKEN,
  type MemoryServer,
  type Received,
} from "./memory-frontend.ts";

type Json = Record<string, any>;

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
  asks: (names) =>
    rpc("ID", {
      result: {
        resultType: "input_required",
        inputRequests: {
          one: {
            method: "elicitation/create",
            params: { message: `Run ${names.join(" or ")}?`, requestedSchema: { type: "object" } },
          },
        },
      },
    }),
  toolError: (names) =>
    rpc("ID", {
      result: {
        resultType: "complete",
        isError: true,
        content: [{ type: "text", text: `No. Try ${names.join(", ")}.` }],
      },
    }),
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

/** Behaviors of an API. The content of its other responses is the result of the tool. */
const API_BEHAVIORS: readonly string[] = ["ok", "status", "notFound", "redirect"];

const world = fc
  .record({
    names: fc.uniqueArray(toolName, { minLength: 3, maxLength: 6 }),
    visible: fc.nat(5),
    kind: fc.constantFrom("modern" as const, "session" as const, "openapi" as const),
    behavior: fc.constantFrom(...Object.keys(behaviors)),
    apiBehavior: fc.constantFrom(...API_BEHAVIORS),
    isSession: fc.boolean(),
    /** Whether the operator offers a tool to nobody. */
    isDenied: fc.boolean(),
    /** Whether a client that may call every tool sends each request first. */
    isWarm: fc.boolean(),
    path: fc.constantFrom(undefined, "one"),
  })
  .map(({ apiBehavior, ...of }) => (of.kind === "openapi" ? { ...of, behavior: apiBehavior } : of));

/** A client, in a session or without one. */
interface LawClient {
  readonly key: string;
  /** Names that it may not receive. */
  hidden(): readonly string[];
  send(method: string, params: Json): Promise<Received>;
  /** Opens a stream of events, reads it for a while, and returns its text. */
  listen(resources: readonly string[]): Promise<Received>;
}

it("no name of a tool that a key may not call leaves, and no client token reaches a server", async () => {
  await fc.assert(
    fc.asyncProperty(world, async (of) => {
      const { names, visible, kind, behavior, isSession, isDenied, isWarm, path } = of;
      const allowed = names[visible % names.length]!;
      const added = "added_later";
      const others = [...names, added].filter((name) => name !== allowed);
      const denied = isDenied ? others[0]! : undefined;
      const toTool = (name: string) => ({
        name,
        description: `Like ${names.join(", ")}.`,
        inputSchema: { type: "object", properties: { a: { description: names.join(" or ") } } },
      });
      const uri = `file:///${others[0]}`;
      const one: MemoryServer = {
        kind,
        tools: names.map(toTool),
        prompts: [{ name: "ask", description: `Uses ${names.join(" and ")}.` }],
        resources: [{ uri: "file:///x", name: "x", description: `For ${names.join(", ")}.` }],
        ...(denied !== undefined && { rules: { tools: { deny: [denied] } } }),
        events: [
          { method: "notifications/tools/list_changed", params: { names: others } },
          { method: "notifications/prompts/list_changed", params: { names: others } },
          { method: "notifications/resources/updated", params: { uri, names: others } },
          {
            method: "notifications/resources/updated",
            params: { uri: "file:///x", names: others },
          },
          { method: "notifications/message", params: { level: "info", data: others.join(" ") } },
          { method: `notifications/${others[0]}`, params: {} },
        ],
        call: () => behaviors[behavior]!(one.tools.map(({ name }) => String(name))),
        override: ({ id, method }) =>
          method === "completion/complete" && isWarm
            ? rpc(id, { result: { completion: { values: others, total: others.length } } })
            : undefined,
      };
      const two: MemoryServer = { kind: "modern", tools: [], call: one.call };
      const { test, sent, post, openStream } = await startFrontend({ one, two });
      await using _ = test;
      const clientOf = async (key: string, tools: readonly string[] | undefined) => {
        const where = { key, tools, path };
        const hidden = () => (tools ? others : others.filter((name) => name === denied));
        const token = { authorization: `Bearer ${TOKEN}`, cookie: TOKEN };
        const expectClean = (what: string, got: Received) => {
          for (const name of hidden())
            expect([what, got.text]).toEqual([what, expect.not.stringContaining(name)]);
          return got;
        };
        let session: Json | undefined;
        if (isSession) {
          const params = { protocolVersion: SESSION, capabilities: {}, clientInfo: { name: "c" } };
          const message = { jsonrpc: "2.0", id: 0, method: "initialize", params };
          const opened = expectClean(
            "initialize",
            await post(message, { ...where, headers: token }),
          );
          session = { ...token, "mcp-session-id": opened.headers["mcp-session-id"] };
        }
        const send = async (method: string, params: Json) => {
          const { body, headers } = modernMessage(method, params);
          return expectClean(
            `${key}: ${method}`,
            session
              ? await post(
                  { jsonrpc: "2.0", id: 1, method, params },
                  { ...where, headers: session },
                )
              : await post(body, { ...where, headers }),
          );
        };
        const listen = async (resources: readonly string[]) => {
          const stop = new AbortController();
          const { signal } = stop;
          const notifications = {
            toolsListChanged: true,
            promptsListChanged: true,
            resourcesListChanged: true,
            resourceSubscriptions: resources,
          };
          if (session) for (const one of resources) await send("resources/subscribe", { uri: one });
          const { body, headers } = modernMessage("subscriptions/listen", { notifications });
          const reading = session
            ? openStream({ ...where, headers: session, signal })
            : post(body, { ...where, headers, signal });
          await turnEventLoop(30);
          stop.abort();
          return expectClean(`${key}: stream`, await reading);
        };
        return { key, hidden, send, listen } satisfies LawClient;
      };
      const some = await clientOf("some", [`one/${allowed}`]);
      const clients = isWarm ? [await clientOf("all", undefined), some] : [some];
      const prefix = path === undefined ? "one__" : "";
      const publicUri = path === undefined ? "one+file:///x" : "file:///x";
      const requests: [string, Json][] = [
        ["server/discover", {}],
        ["tools/list", {}],
        ["prompts/list", {}],
        ["resources/list", {}],
        ["resources/templates/list", {}],
        ["tools/call", { name: prefix + allowed, arguments: {} }],
        ["tools/call", { name: `${prefix}unknown_name` }],
        ["prompts/get", { name: `${prefix}unknown_name` }],
        ["prompts/get", { name: `${prefix}ask` }],
        ["resources/read", { uri: publicUri }],
        [
          "completion/complete",
          { ref: { type: "ref/prompt", name: `${prefix}ask` }, argument: {} },
        ],
        ["completion/complete", { ref: { type: "ref/resource", uri: publicUri }, argument: {} }],
        ["logging/setLevel", { level: "debug" }],
      ];
      for (const [method, params] of requests)
        for (const client of clients) await client.send(method, params);
      // A tool is added, and the stream of events reports it.
      if (kind !== "openapi") one.tools = [...one.tools, toTool(added)];
      for (const client of clients) await client.listen([publicUri]);
      for (const [method, params] of requests.slice(0, 6))
        for (const client of clients) await client.send(method, params);
      for (const { headers, body, url } of sent)
        expect(JSON.stringify([headers, body, url])).not.toContain(TOKEN);
      if (isWarm) return;
      expect(sent.filter(({ body }) => others.some((name) => body.includes(name)))).toEqual([]);
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
          kind: "modern",
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
            kind: isModern ? "modern" : "session",
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
