// Requests that were not sent: a server that does not answer is asked once, no client depends on the
// connection of another one, and calls that never left cost nothing.
import { expect, it } from "vitest";
import { createFault, type Context, type RequestHead } from "tollgate/plugin";
import { createTestContext } from "tollgate/testing";
import { MountedServer } from "../../../../plugins/frontends/mcp/mounted-server.ts";
import { RemoteServer } from "../../../../plugins/frontends/mcp/remote/remote-server.ts";
import type {
  ServerDescription,
  ToolServer,
} from "../../../../plugins/frontends/mcp/tool-server.ts";
import { toStreamedResponse } from "../../../../src/testing/context.ts";
import { until } from "../../../kit/wait.ts";
import { modernMessage, MODERN, rpc, startFrontend } from "./memory-frontend.ts";

it.each(["modern", "session", "openapi"] as const)(
  "a call whose client has left is not sent to a server of the kind %s, and costs nothing",
  async (kind) => {
    const leaving = new AbortController();
    const results: unknown[] = [];
    let calls = 0;
    const call = () => {
      calls++;
      return rpc("ID", { result: { content: [] } });
    };
    const tools = [{ name: "echo", inputSchema: { type: "object" } }];
    const frontend = await startFrontend({ one: { kind, tools, call } }, async () => {
      leaving.abort();
      return { id: "call", settle: async (result) => void results.push(result) };
    });
    const { body, headers } = modernMessage("tools/call", { name: "one__echo", arguments: {} });
    await frontend.post(body, { headers, signal: leaving.signal });
    expect(results).toEqual([{ outcome: "canceled", state: "void" }]);
    expect(calls).toBe(0);
    await frontend.test.end();
  },
);

const CALL = {
  method: "tools/call",
  params: { name: "echo" },
  onNotification() {},
  askClient: () => Promise.reject(new Error("not asked")),
} as const;

const callerWith = (signal: AbortSignal) => ({
  credential: { headers: {}, owner: "shared" },
  partition: "p",
  capabilities: {},
  signal,
});

/** A server whose revision is not known until `answer` is called. */
function startProbe() {
  const methods: string[] = [];
  const answers: ((response: Response) => void)[] = [];
  const ctx = {
    fetchStream(_: string, { body, signal }: { body: string; signal: AbortSignal }) {
      const { id, method } = JSON.parse(body) as { id: number; method: string };
      methods.push(method);
      if (method !== "server/discover")
        return Promise.resolve(toStreamedResponse(rpc(id, { result: { tools: [], content: [] } })));
      return new Promise((resolve, reject) => {
        const cancel = () => reject(createFault("canceled", "The request was canceled."));
        signal.addEventListener("abort", cancel);
        answers.push((response) => resolve(toStreamedResponse(response)));
      });
    },
    runEvery: () => undefined,
    onDispose: () => undefined,
  };
  const settings = { name: "one", url: "https://one.example", idleMs: 60_000 };
  const server = new RemoteServer({ ...settings, revision: undefined }, ctx as unknown as Context);
  const found = { result: { supportedVersions: [MODERN] } };
  return {
    server,
    methods,
    answer: (response = rpc(1, found)) => answers.shift()!(response),
  };
}

it("a client that leaves while the revision is determined affects only its own call", async () => {
  const { server, methods, answer } = startProbe();
  const leaving = new AbortController();
  const canceled = server.request(CALL, callerWith(leaving.signal));
  const listed = server.list("tools", callerWith(new AbortController().signal));
  leaving.abort();
  answer();
  await expect(canceled).rejects.toMatchObject({ progress: "unsent" });
  expect(await listed).toMatchObject({ items: [] });
  expect(methods).toEqual(["server/discover", "tools/list"]);
});

it("a call is unsent if the revision of its server cannot be determined", async () => {
  const { server, methods, answer } = startProbe();
  const failed = server.request(CALL, callerWith(new AbortController().signal));
  answer(new Response("failed", { status: 500 }));
  await expect(failed).rejects.toMatchObject({ progress: "unsent", status: 500 });
  expect(methods).toEqual(["server/discover"]);
});

it("a description that is being read is used at any age, and only its own failure removes it", async () => {
  await using test = createTestContext({ id: "frontends.mcp" });
  type Described = PromiseWithResolvers<ServerDescription>;
  const reads: Described[] = [];
  const server: ToolServer = {
    name: "one",
    describe() {
      reads.push(Promise.withResolvers());
      return reads.at(-1)!.promise;
    },
    list: async () => ({ items: [] }),
    request: async () => ({}),
  };
  let owner = "first";
  const mounted = new MountedServer({
    server,
    rules: { zero_retention: false },
    credentials: { resolve: () => ({ headers: {}, owner }) },
    // A description that was read is too old immediately.
    listTtlMs: 0,
    listTimeoutMs: 60_000,
    ctx: test.ctx,
  });
  const x = { identity: { id: "key" } } as unknown as RequestHead;
  const describe = () => mounted.describe(x).catch(() => undefined);
  const first = [describe(), describe()];
  await until(() => reads.length >= 1);
  // Descriptions of other owners take the place of the first one.
  for (let n = 0; n < 1_000; n++) {
    owner = `other ${n}`;
    void describe();
  }
  await until(() => reads.length >= 1_001);
  owner = "first";
  const second = describe();
  await until(() => reads.length >= 1_002);
  reads[0]!.reject(new Error("failed"));
  expect(await Promise.all(first)).toEqual([undefined, undefined]);
  const third = describe();
  const description: ServerDescription = { capabilities: {} };
  for (const read of reads) read.resolve(description);
  expect(await Promise.all([second, third])).toEqual([description, description]);
  expect(reads).toHaveLength(1_002);
  void describe();
  await until(() => reads.length >= 1_003);
  reads.at(-1)!.resolve(description);
});
