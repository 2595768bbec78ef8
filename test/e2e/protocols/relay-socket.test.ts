// A socket protocol of a third party, on the public contract alone: relayed in both directions, each
// response reserved and billed, whoever cuts the connection and when.
import { once } from "node:events";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { WebSocketServer, type WebSocket } from "ws";
import { digestKey } from "../../../src/lib/api-key.ts";
import { startInProcess } from "../../kit/in-process.ts";
import { dial, type DialOptions, type SocketClient } from "../../kit/socket-client.ts";
import { until } from "../../kit/wait.ts";

/** A client asks, or the provider speaks unasked. Its text may be cut, and its usage comes last. */
const PROTOCOL = `
import { chatOperation, fail } from "tollgate/plugin";
const read = (message) => typeof message === "string" ? JSON.parse(message) : undefined;
export const toy = {
  id: "toy", operationSpec: chatOperation,
  socket: {
    createMeter(sink, to) {
      const asked = []; const running = new Map();
      return {
        readClientMessage(message) {
          const it = read(message);
          if (!it) return undefined;
          if (it.type === "bad") fail("invalid", "No such thing.", { code: "toy_bad" });
          if (it.type === "drop") return null;
          if (it.type === "rename") return JSON.stringify({ type: "renamed", model: to.model });
          if (it.type === "ask") asked.push(sink.beginResponse({ inputBytes: 300, facts: { features: [], maxOutput: it.max ?? 1000 } }));
          return undefined;
        },
        readProviderMessage(message) {
          const it = read(message);
          if (it?.type === "begin") {
            const one = asked.shift() ?? sink.beginResponse({ inputBytes: 300, facts: { features: [], maxOutput: it.max ?? 1000 } });
            running.set(it.id, one);
            one.reportStart(it.id);
          } else if (it?.type === "text") running.get(it.id)?.reportContent(it.text.length);
          else if (it?.type === "done") {
            const one = running.get(it.id);
            running.delete(it.id);
            one?.reportUsage({ type: "usage", usage: it.usage });
            one?.reportFinish("stop");
          }
          return undefined;
        },
        encodeCancel: () => JSON.stringify({ type: "cancel" }),
      };
    },
    encodeFault: (fault) => ({ message: JSON.stringify({ type: "error", code: fault.code ?? fault.kind, message: fault.message }) }),
  },
};
`;
const FRONTEND = `
import { defineFrontend } from "tollgate/plugin";
import { toy } from "./toy.js";
const model = (x, first) => ({ model: x.query.get("model") ?? JSON.parse(String(first)).model });
export default defineFrontend({ api: 1, name: "toy", summary: "Toy", setup: () => ({
  protocol: toy, routes: [],
  sockets: [
    { path: "/toy", subprotocols: ["toy"], action: "live", readModel: model },
    { path: "/late/:room", action: "live", readsFirstMessage: true, readModel: model },
  ],
}) });
`;
const PROVIDER = `
import { defineProvider } from "tollgate/plugin";
import { toy } from "./toy.js";
export default defineProvider({ api: 1, name: "toy-provider", summary: "Toy",
  options: { type: "object", properties: { base_url: { type: "string", "x-origin": true, description: "Base" } }, required: ["base_url"], additionalProperties: false },
  credential: { type: "object", properties: { api_key: { type: "string", "x-secret": true, description: "Key" } }, required: ["api_key"], additionalProperties: false },
  setup: ({ base_url }) => ({ endpoints: [{ protocol: toy, base: base_url, auth: { header: "authorization", prefix: "Bearer ", field: "api_key" },
    sockets: { live: { path: (of) => "/live?model=" + encodeURIComponent(of.model), subprotocols: ["toy-up"] } } }] }),
});
`;
const [ALICE, POOR, NARROW] = ["alice-key", "poor-key", "narrow-key"];
const yaml = (up: string) => `
frontends: [{ use: ./frontend.js }]
middleware:
  - use: auth
    with:
      keys:
        - { id: alice, digest: "${digestKey(ALICE)}" }
        - { id: poor, digest: "${digestKey(POOR)}", limits: ["usd=0.01/month"] }
        - { id: narrow, digest: "${digestKey(NARROW)}", models: ["toy/other"] }
  - limits
providers:
  toy:
    use: ./provider.js
    with: { base_url: "${up}", api_key: upstream-secret }
    models: { m: { price: { input: 1, output: 10 } } }
`;

/** The provider: a server whose one open socket a test drives. */
const server = createServer();
const acceptor = new WebSocketServer({ noServer: true });
let handshakes: IncomingMessage[] = [];
let provider: WebSocket & { said: any[] };
let refuse: number | undefined;
server.on("upgrade", (req, socket, head) => {
  handshakes.push(req);
  if (refuse !== undefined) {
    socket.end(`HTTP/1.1 ${refuse} No\r\ncontent-length: 2\r\n\r\n{}`);
    return;
  }
  acceptor.handleUpgrade(req, socket, head, (ws) => {
    provider = Object.assign(ws, { said: [] as any[] });
    ws.on("error", () => {});
    ws.on("message", (data: Buffer, isBinary) =>
      provider.said.push(isBinary ? data : JSON.parse(data.toString())),
    );
  });
});

let gateway: Awaited<ReturnType<typeof startInProcess>>;
const open: SocketClient[] = [];
const connected = async (key = ALICE, more: DialOptions = {}): Promise<SocketClient> => {
  const client = await dial(gateway.url, { key, path: "/toy?model=toy/m", ...more });
  open.push(client);
  return client;
};
const tell = (message: object) => provider.send(JSON.stringify(message));
const heard = (fits: (message: any) => boolean) => until(() => provider.said.some(fits));
interface Row {
  readonly kind: string;
  readonly attempt: string;
  readonly state: string;
  readonly usage: { readonly input?: number; readonly output?: number };
}
const rows = async (): Promise<Row[]> =>
  ((await gateway.ask("ledger.entries", { limit: 500 })) as any).items;
/** The rows that were written since the test began. */
let before = 0;
const settled = async () => (await rows()).slice(before).filter(({ kind }) => kind === "settle");

beforeAll(async () => {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  gateway = await startInProcess({
    yaml: yaml(`http://127.0.0.1:${(server.address() as AddressInfo).port}`),
    files: {
      "toy.js": PROTOCOL,
      "frontend.js": FRONTEND,
      "provider.js": PROVIDER,
      "package.json": '{"type":"module"}',
    },
  });
});
beforeEach(async () => {
  refuse = undefined;
  handshakes = [];
  before = (await rows()).length;
});
afterEach(async () => {
  await Promise.all(open.splice(0).map((client) => client[Symbol.asyncDispose]()));
});
afterAll(async () => {
  await gateway[Symbol.asyncDispose]();
  server.close();
});

describe("a relayed socket", () => {
  it("passes messages in both directions, and bills each response by its usage", async () => {
    const client = await connected(ALICE, { subprotocols: ["other", "toy"] });
    expect(client.protocol).toBe("toy");
    expect(handshakes[0]!.headers).toMatchObject({
      authorization: "Bearer upstream-secret",
      "sec-websocket-protocol": "toy-up",
    });
    expect(handshakes[0]!.url).toBe("/live?model=m");
    expect(JSON.stringify(handshakes[0]!.rawHeaders)).not.toContain(ALICE);
    client.send({ type: "hello" });
    client.ws.send(Buffer.from([1, 2, 3]));
    client.send({ type: "ask" });
    await heard(({ type }) => type === "ask");
    expect(provider.said).toEqual([{ type: "hello" }, Buffer.from([1, 2, 3]), { type: "ask" }]);
    tell({ type: "begin", id: "r1" });
    tell({ type: "text", id: "r1", text: "Hello" });
    provider.send(Buffer.from([9]));
    tell({ type: "done", id: "r1", usage: { input: 100, output: 20 } });
    const all = await client.until(({ type }) => type === "done");
    expect(all.map((one) => one.type ?? "bytes")).toEqual(["begin", "text", "bytes", "done"]);
    expect(await settled()).toMatchObject([{ state: "exact", usage: { input: 100, output: 20 } }]);
    // The provider speaks unasked.
    tell({ type: "begin", id: "r2" });
    tell({ type: "done", id: "r2", usage: { input: 7, output: 3 } });
    await client.until(({ type }) => type === "done");
    expect(await settled()).toMatchObject([{}, { state: "exact", usage: { input: 7, output: 3 } }]);
  });

  it("lets the meter replace, drop and reject messages", async () => {
    const client = await connected();
    client.send({ type: "bad" });
    expect((await client.until(() => true))[0]).toMatchObject({ type: "error", code: "toy_bad" });
    client.send({ type: "drop" });
    client.send({ type: "rename" });
    client.send({ type: "last" });
    await heard(({ type }) => type === "last");
    expect(provider.said).toEqual([{ type: "renamed", model: "m" }, { type: "last" }]);
  });

  it("is opened by the first message where that names the model", async () => {
    const client = await connected(ALICE, { path: "/late/7" });
    expect(handshakes).toHaveLength(0);
    client.send({ type: "setup", model: "toy/m" });
    client.send({ type: "more" });
    await until(() => handshakes.length === 1 && provider.said.length === 2);
    expect(provider.said).toEqual([{ type: "setup", model: "toy/m" }, { type: "more" }]);
    const wrong = await connected(ALICE, { path: "/late/7" });
    wrong.send({ type: "setup", model: "none" });
    expect((await wrong.until(() => true))[0]).toMatchObject({ code: "model_not_found" });
    expect(await wrong.closed).toMatchObject({ code: 1008 });
  });

  it.each([
    [ALICE, "/toy?model=none", 404],
    [NARROW, "/toy?model=toy/m", 403],
    ["wrong", "/toy?model=toy/m", 401],
  ])("is rejected before it opens (%s %s)", async (key, path, status) => {
    await expect(connected(key, { path })).rejects.toMatchObject({ status });
    expect(handshakes).toHaveLength(0);
  });

  it("is rejected with the error of a provider that rejects it", async () => {
    refuse = 401;
    await expect(connected()).rejects.toMatchObject({ status: 502 });
    expect(await settled()).toEqual([]);
  });

  it("ends with the provider's connection", async () => {
    const client = await connected();
    provider.close(1000);
    expect(await client.closed).toMatchObject({ code: 1000 });
  });
});

describe("a budget", () => {
  it("that does not fit rejects the client's request before the provider learns of it", async () => {
    const client = await connected(POOR);
    client.send({ type: "ask", max: 1_000_000 });
    expect((await client.until(() => true))[0]).toMatchObject({ code: "insufficient_quota" });
    client.send({ type: "after" });
    await heard(({ type }) => type === "after");
    expect(provider.said).toEqual([{ type: "after" }]);
    expect(await settled()).toEqual([]);
  });
  it("that does not fit cancels a response of the provider, which is billed, and ends the socket", async () => {
    const client = await connected(POOR);
    tell({ type: "begin", id: "r1", max: 1_000_000 });
    await heard(({ type }) => type === "cancel");
    expect((await client.until(() => true))[0]).toMatchObject({ code: "insufficient_quota" });
    expect(await client.closed).toMatchObject({ code: 1008 });
    await until(async () => (await settled()).length === 1);
    expect((await settled())[0]!.state).toBe("estimated");
  });
});

describe.each(["client", "provider"] as const)("cut by the %s", (who) => {
  const script = [
    { type: "ask" },
    { type: "begin", id: "r1" },
    { type: "text", id: "r1", text: "Hello, this is text." },
    { type: "done", id: "r1", usage: { input: 100, output: 20 } },
  ];
  it.each([0, 1, 2, 3, 4])("after %i messages, nothing is unbilled or billed twice", async (n) => {
    const client = await connected();
    for (const [i, message] of script.slice(0, n).entries()) {
      if (i === 0) {
        client.send(message);
        await heard(({ type }) => type === "ask");
      } else {
        tell(message);
        await client.until(({ type }) => type === message.type);
      }
    }
    if (who === "client") client.ws.terminate();
    else provider.terminate();
    await client.closed;
    const done = n === 4;
    if (n > 0) await until(async () => (await settled()).length > 0);
    const all = await settled();
    expect(all).toHaveLength(n === 0 ? 0 : 1);
    if (n > 0) expect(all[0]!.state).toBe(done ? "exact" : "estimated");
    if (done) expect(all[0]!.usage).toMatchObject({ input: 100, output: 20 });
    const reserved = (await rows()).slice(before).filter(({ kind }) => kind === "reserve");
    expect(reserved).toHaveLength(all.length);
  });
});
