// The revision of a remote server, as the gateway finds it out.
import { expect, it } from "vitest";
import { createFault, type Context, type StreamedResponse } from "tollgate/plugin";
import { RemoteServer } from "../../../../plugins/frontends/mcp/remote/remote-server.ts";
import { toStreamedResponse } from "../../../../src/testing/context.ts";
import type { ServerCaller } from "../../../../plugins/frontends/mcp/tool-server.ts";

const MODERN = "2026-07-28";
const LEGACY = "2025-11-25";
const SETTINGS = { name: "one", url: "https://mcp.example/mcp", idleMs: 1_000 };
const CALLER: ServerCaller = {
  credential: { headers: {}, owner: "shared" },
  partition: "p",
  capabilities: {},
  signal: new AbortController().signal,
};

type Answer = (message: { id: number; method: string }) => Response;

const rpc = (id: number, of: object, status = 200) =>
  Response.json({ jsonrpc: "2.0", id, ...of }, { status });
const modern: Answer = ({ id, method }) =>
  method === "server/discover"
    ? rpc(id, { result: { supportedVersions: [MODERN], capabilities: {} } })
    : rpc(id, { error: { code: -32_601, message: "Method not found" } }, 404);
const sessions =
  (status: number): Answer =>
  ({ id, method }) =>
    method === "server/discover"
      ? new Response("no session", { status })
      : method === "initialize"
        ? rpc(id, { result: { protocolVersion: LEGACY, capabilities: {} } })
        : new Response(null, { status: 202 });

/** A server that answers its first requests in another way. */
function serverWith(answer: Answer, first: Answer[] = []) {
  const methods: string[] = [];
  const ctx = {
    fetchStream: (_: string, { body }: { body: string }) => {
      const message = JSON.parse(body) as { id: number; method: string };
      methods.push(message.method);
      return Promise.resolve(toStreamedResponse((first.shift() ?? answer)(message)));
    },
    runEvery: () => undefined,
    onDispose: () => undefined,
  } as unknown as Context;
  const settings = { ...SETTINGS, revision: undefined };
  return { server: new RemoteServer(settings, ctx), methods };
}

it.each([301, 401, 403, 408, 429, 500, 503])(
  "a status of %s does not show the revision",
  async (status) => {
    const failures: Answer[] = [
      () => new Response("failed", { status }),
      ({ id }) => rpc(id, { error: { code: -32_000, message: "failed" } }, status),
    ];
    for (const failure of failures) {
      const { server, methods } = serverWith(modern, [failure]);
      await expect(server.describe(CALLER)).rejects.toMatchObject({ status });
      expect(methods).toEqual(["server/discover"]);
      expect(await server.describe(CALLER)).toMatchObject({ revision: MODERN });
    }
  },
);

it.each([400, 404, 405])("a status of %s shows a server with sessions", async (status) => {
  const { server, methods } = serverWith(sessions(status));
  expect(await server.describe(CALLER)).toMatchObject({ revision: LEGACY });
  expect(await server.describe(CALLER)).toMatchObject({ revision: LEGACY });
  expect(methods).toEqual(["server/discover", "initialize", "notifications/initialized"]);
});

it("the revision is determined again if no session can be opened", async () => {
  const uses: ((server: RemoteServer) => Promise<unknown>)[] = [
    (server) => server.describe(CALLER),
    (server) => server.list("tools", CALLER),
    (server) =>
      server.listen({ lists: new Set(), resources: [] }, CALLER, { event() {}, end() {} }),
  ];
  for (const use of uses) {
    const { server } = serverWith(modern, [() => new Response("starting", { status: 404 })]);
    await expect(use(server)).rejects.toThrow("Method not found");
    expect(await server.describe(CALLER)).toMatchObject({ revision: MODERN });
  }
});

it("the session that was not used for longest is ended if there are too many", async () => {
  const ended: string[] = [];
  let opened = 0;
  const ctx = {
    fetchStream: (_: string, init: { method: string; body: string; headers: object }) => {
      if (init.method === "DELETE") {
        ended.push((init.headers as Record<string, string>)["mcp-session-id"]!);
        return Promise.resolve(toStreamedResponse(new Response(null, { status: 200 })));
      }
      const message = JSON.parse(init.body) as { id: number; method: string };
      const response = sessions(400)(message);
      if (message.method === "initialize")
        response.headers.set("mcp-session-id", `session-${++opened}`);
      return Promise.resolve(toStreamedResponse(response));
    },
    runEvery: () => undefined,
    onDispose: () => undefined,
  } as unknown as Context;
  const settings = { ...SETTINGS, revision: LEGACY } as const;
  const server = new RemoteServer(settings, ctx);
  const use = (partition: string) => server.describe({ ...CALLER, partition });
  for (let n = 1; n <= 1_000; n++) await use(`client ${n}`);
  await use("client 1");
  await use("client 1001");
  expect(ended).toEqual(["session-2"]);
});

/** A server of the stateless revision whose requests are answered by a function. */
function statelessServer(fetchStream: () => Promise<Partial<StreamedResponse>>) {
  const ctx = { fetchStream, runEvery: () => undefined, onDispose: () => undefined };
  const settings = { ...SETTINGS, revision: MODERN } as const;
  return new RemoteServer(settings, ctx as unknown as Context);
}

const CALL = {
  method: "tools/call",
  params: { name: "tool" },
  onNotification() {},
  askClient: () => Promise.reject(new Error("not asked")),
} as const;

it.each([
  ["connect_failed", "unsent"],
  ["tls_failed", "unsent"],
  ["address_private", "unsent"],
  ["upstream_disconnected", "unknown"],
])("a request that fails with %s is %s", async (code, progress) => {
  const failed = createFault("upstream", "failed", { code });
  const server = statelessServer(() => Promise.reject(failed));
  await expect(server.request(CALL, CALLER)).rejects.toMatchObject({ progress, status: 502 });
});

it("a response that cannot be read is canceled", async () => {
  let canceled = 0;
  const cancel = () => void canceled++;
  const bytes = () => Promise.reject(createFault("upstream", "broken", { code: "truncated" }));
  const headers: StreamedResponse["headers"][] = [
    { "content-type": "text/html" },
    { "content-type": "application/json" },
    { "content-type": 5 as unknown as string },
  ];
  for (const [i, own] of headers.entries()) {
    const server = statelessServer(async () => ({ status: 200, headers: own, bytes, cancel }));
    await expect(server.request(CALL, CALLER)).rejects.toThrow();
    expect(canceled).toBe(i + 1);
  }
});
