// WebSockets of the playground, and the commands that list and close open WebSockets.
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import type { LiveSockets } from "../../../src/admin/commands/socket-commands.ts";
import { startInProcess, type InProcessGateway } from "../../kit/in-process.ts";
import {
  startRealtimeUpstream,
  type RealtimeUpstream,
} from "../../kit/sockets/realtime-upstream.ts";
import { openSocket } from "../../kit/sockets/socket-client.ts";
import { until } from "../../kit/wait.ts";

let upstream: RealtimeUpstream;
let gateway: InProcessGateway;
let admin: string;

beforeAll(async () => {
  upstream = await startRealtimeUpstream();
  gateway = await startInProcess({
    yaml: `admin: { port: 0 }
frontends: [realtime, responses]
middleware: [auth]
observers: [console]
accounts: { web: {}, mobile: {} }
providers:
  demo: { use: demo }
  vendor:
    use: openai
    with: { base_url: "${upstream.url}/v1", api_key: sk-up }
    models: { gpt-realtime: { operation: realtime } }
`,
  });
  admin = ((await gateway.ask("status")) as { adminUrl: string }).adminUrl;
});
afterAll(async () => {
  await gateway?.[Symbol.asyncDispose]();
  await upstream?.stop();
});
const list = async (input: object = {}) =>
  (await gateway.ask("sockets.list", input as never)) as never as LiveSockets;
afterEach(() => until(async () => (await list()).total === 0));

const PATH = "/v1/realtime?model=vendor/gpt-realtime";
let made = 0;

/** Signs an admin in. Returns a function that sends a request of the console. */
async function signIn(role: string, account?: string) {
  const name = `${role}-${made++}`;
  const { secret } = (await gateway.ask("admins.create", { name, role, account })) as never;
  const headers = {
    "content-type": "application/json",
    "x-tollgate-console": "1",
    origin: admin,
  };
  const session = await fetch(`${admin}/admin/v1/session`, {
    method: "POST",
    headers,
    body: JSON.stringify({ token: secret }),
  });
  const cookie = session.headers.get("set-cookie")!.split(";")[0]!;
  return (path: string, body: object) =>
    fetch(admin + path, {
      method: "POST",
      headers: { ...headers, cookie },
      body: JSON.stringify(body),
    });
}

/** Reads the lines of a playground connection. */
function readLines(answer: Response) {
  const lines: Record<string, any>[] = [];
  const over = (async () => {
    let rest = "";
    for await (const piece of answer.body!.pipeThrough(new TextDecoderStream())) {
      const parts = (rest + piece).split("\n");
      rest = parts.pop()!;
      lines.push(...parts.map((one) => JSON.parse(one) as Record<string, any>));
    }
  })();
  const events = () =>
    lines.filter(({ type }) => type === "message").map(({ message }) => JSON.parse(message));
  return { lines, events, over };
}

describe("the playground", () => {
  it("talks over a WebSocket with the key that the reader entered", async () => {
    const ask = await signIn("viewer");
    const talk = readLines(await ask("/console/socket", { path: PATH, key: gateway.key }));
    await until(() => talk.lines.length > 0);
    const { id } = talk.lines[0]!;
    const send = (...events: object[]) =>
      ask("/console/socket/send", { id, messages: events.map((one) => JSON.stringify(one)) });
    const item = {
      type: "message",
      role: "user",
      content: [{ type: "input_text", text: "Hello" }],
    };
    await send({ type: "conversation.item.create", item }, { type: "response.create" });
    await until(() => talk.events().some(({ type }) => type === "response.done"));
    expect((await list()).items).toMatchObject([
      { type: "relay", frontend: "realtime", model: "vendor/gpt-realtime", provider: "vendor" },
    ]);

    // Each response has a record of its own, with the ID of the connection, in one trace.
    const session = (await list()).items[0]!.id;
    await send({ type: "response.create" });
    const records = async () => {
      const { items } = (await gateway.ask("requests.list", { last: 10 })) as never as {
        items: { session?: string; trace: { traceId: string; spanId: string } }[];
      };
      // The handshake has a record too.
      return items.filter(({ session: of }) => of !== undefined);
    };
    await until(async () => (await records()).length === 2);
    const [first, second] = await records();
    expect([first!.session, second!.session]).toEqual([session, session]);
    expect(first!.trace.traceId).toBe(second!.trace.traceId);
    expect(first!.trace.spanId).not.toBe(second!.trace.spanId);

    // Another admin does not reach the connection.
    const other = await signIn("owner");
    const answer = await other("/console/socket/send", { id, messages: ["{}"] });
    expect(answer.status).toBe(404);

    await ask("/console/socket/send", { id, close: true });
    await talk.over;
    expect(talk.lines.at(-1)).toMatchObject({ type: "closed" });
    expect((await ask("/console/socket/send", { id, messages: [] })).status).toBe(404);
  });

  it("reports why a connection was rejected", async () => {
    const ask = await signIn("viewer");
    const rejected = async (path: string, key: string) => {
      const talk = readLines(await ask("/console/socket", { path, key }));
      await talk.over;
      return talk.lines;
    };
    expect(await rejected(PATH, "tg_wrong")).toMatchObject([
      { type: "rejected", code: "invalid_api_key" },
    ]);
    expect(await rejected("/v1/realtime?model=nobody/x", gateway.key)).toMatchObject([
      { type: "rejected", message: expect.stringContaining("nobody/x") },
    ]);
  });

  it("connects to nothing but a relay of the gateway", async () => {
    const ask = await signIn("viewer");
    for (const path of [
      "/v1/responses",
      "//evil.example/v1/realtime?model=x",
      "/admin/v1/stats",
      "",
    ])
      expect((await ask("/console/socket", { path, key: gateway.key })).status, path).toBe(400);
    const metrics = await signIn("metrics");
    expect((await metrics("/console/socket", { path: PATH, key: gateway.key })).status).toBe(403);
  });
});

describe("open WebSockets", () => {
  it("are listed with their key, and closed by an operator", async () => {
    const client = await openSocket(`${gateway.url}/v1/responses`, { key: gateway.key });
    const { items, total } = await list();
    expect(total).toBe(1);
    expect(items).toMatchObject([
      { type: "requests", frontend: "responses", running: 0, isClosing: false, pauseReasons: [] },
    ]);
    expect(items[0]!.ageMs).toBeGreaterThanOrEqual(0);
    await gateway.ask("sockets.close", { id: items[0]!.id });
    expect(await client.closed).toEqual({
      code: 1008,
      reason: "An administrator closed this connection.",
    });
    expect(client.messages.at(-1)).toMatchObject({
      type: "error",
      error: { code: "closed_by_admin" },
    });
    await expect(gateway.ask("sockets.close", { id: items[0]!.id })).rejects.toMatchObject({
      message: expect.stringContaining("is not open"),
    });
  });

  it("are visible to an admin of their account alone", async () => {
    const { secret } = (await gateway.ask("keys.create", { name: "w", account: "web" })) as never;
    const client = await openSocket(`${gateway.url}/v1/responses`, { key: secret });
    const [{ id } = { id: "" }] = (await list()).items;
    const run = async (account: string, name: string, input: object = {}) => {
      const answer = await (await signIn("operator", account))(`/admin/v1/${name}`, input);
      return { status: answer.status, ...((await answer.json()) as Partial<LiveSockets>) };
    };
    expect(await run("mobile", "sockets.list")).toMatchObject({ status: 200, total: 0 });
    expect(await run("mobile", "sockets.close", { id })).toMatchObject({ status: 404 });
    expect(await run("web", "sockets.list")).toMatchObject({
      total: 1,
      items: [{ account: "web" }],
    });
    expect(await run("web", "sockets.close", { id })).toMatchObject({ status: 200 });
    expect((await client.closed).code).toBe(1008);
  });
});
