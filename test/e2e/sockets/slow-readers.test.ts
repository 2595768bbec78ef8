// Clients and providers that do not read: the gateway stops reading what is sent to them, so that its
// memory stays bounded. Everything arrives when they read again.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { WebSocketServer, type WebSocket } from "ws";
import { digestKey } from "../../../src/lib/api-key.ts";
import { startInProcess, type InProcessGateway } from "../../kit/in-process.ts";
import { dial } from "../../kit/socket-client.ts";
import { until } from "../../kit/wait.ts";

const KEY = "alice-key";
const TEXT = "a".repeat(64 * 1024);
/** Messages of 64 KiB that are sent to who does not read. */
const MESSAGES = 1_000;
/**
 * Messages that may be underway: in the buffers of four ends of two connections in the kernel, which
 * have up to 6 MB each, and in those of the gateway.
 */
const MOST_UNDERWAY = 600;

let server: Server;
let gateway: InProcessGateway;
/** Messages that the provider has sent to the gateway, and received. */
let sent = 0;
let received = 0;
let provider: WebSocket | undefined;

/** Sends messages as fast as the other end reads them. */
async function flood(write: (message: object) => void, buffered: () => number, messages: object[]) {
  for (const message of messages) {
    await until(() => buffered() < 256 * 1024);
    write(message);
    sent++;
  }
}

/** Resolves to the value when it has stopped changing. */
async function stopped(value: () => number): Promise<number> {
  let last = value();
  let same = 0;
  await until(() => {
    same = value() === last ? same + 1 : 0;
    last = value();
    return same > 50;
  });
  return last;
}

const deltas = (type: string) =>
  Array.from({ length: MESSAGES }, (_, i) => ({
    type,
    response_id: "resp_1",
    item_id: "msg_1",
    output_index: 0,
    content_index: 0,
    sequence_number: i + 3,
    delta: TEXT,
  }));
const response = (status: string) => ({
  response: { id: "resp_1", object: "response", created_at: 1, status, model: "m", output: [] },
});
const item = {
  type: "message",
  id: "msg_1",
  role: "assistant",
  status: "in_progress",
  content: [],
};
const ANSWER = [
  { type: "response.created", ...response("in_progress") },
  { type: "response.output_item.added", output_index: 0, item },
  {
    type: "response.content_part.added",
    output_index: 0,
    item_id: "msg_1",
    content_index: 0,
    part: { type: "output_text", text: "", annotations: [] },
  },
  ...deltas("response.output_text.delta"),
];

function accept(ws: WebSocket, { url = "" }: IncomingMessage): void {
  provider = ws;
  ws.on("error", () => {});
  const send = (message: object) => ws.send(JSON.stringify(message));
  const buffered = () => (ws.readyState === ws.OPEN ? ws.bufferedAmount : 0);
  if (url.includes("realtime")) {
    send({ type: "session.created", session: { type: "realtime", model: "m" } });
    ws.on("message", (data: Buffer) => {
      received++;
      if (data.includes("conversation.item.retrieve"))
        void flood(send, buffered, deltas("response.output_audio.delta"));
    });
  } else ws.on("message", () => void flood(send, buffered, ANSWER));
}

async function answer(req: IncomingMessage, res: ServerResponse): Promise<void> {
  req.resume();
  res.on("error", () => {});
  res.writeHead(200, { "content-type": "text/event-stream" });
  const write = (message: object) =>
    res.write(`event: ${(message as { type: string }).type}\ndata: ${JSON.stringify(message)}\n\n`);
  await flood(write, () => (res.destroyed ? 0 : res.writableLength), ANSWER);
}

beforeAll(async () => {
  const wss = new WebSocketServer({ noServer: true, perMessageDeflate: false });
  server = createServer((req, res) =>
    req.method === "POST" ? void answer(req, res) : res.writeHead(404).end(),
  );
  server.on("upgrade", (req, socket, head) => {
    if (req.url!.startsWith("/http")) return void socket.end("HTTP/1.1 404 Not Found\r\n\r\n");
    wss.handleUpgrade(req, socket, head, (ws) => accept(ws, req));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const model = "{ m: { price: { input: 1, output: 10 } } }";
  gateway = await startInProcess({
    yaml: `
frontends: [responses, realtime]
middleware:
  - { use: auth, with: { keys: [{ id: alice, digest: "${digestKey(KEY)}" }] } }
store: memory
providers:
  voice:
    use: openai
    with: { base_url: "${url}/v1", api_key: k }
    models: { m: { operation: realtime } }
  pooled: { use: openai, with: { base_url: "${url}/v1", api_key: k }, models: ${model} }
  plain: { use: openai, with: { base_url: "${url}/http/v1", api_key: k }, models: ${model} }
`,
  });
});
afterAll(async () => {
  await gateway[Symbol.asyncDispose]();
  server.closeAllConnections();
  server.close();
});

describe("a client that does not read", () => {
  it.each([
    [
      "a relayed connection",
      "/v1/realtime?model=voice/m",
      { type: "conversation.item.retrieve", item_id: "item_1" },
      MESSAGES,
    ],
    [
      "a response over the provider's WebSocket",
      "/v1/responses",
      { type: "response.create", model: "pooled/m", input: "Hi" },
      ANSWER.length,
    ],
    [
      "a response over HTTP",
      "/v1/responses",
      { type: "response.create", model: "plain/m", input: "Hi" },
      ANSWER.length,
    ],
  ])("of %s stops the provider", { timeout: 120_000 }, async (_, path, request, all) => {
    sent = 0;
    await using client = await dial(gateway.url, { key: KEY, path, perMessageDeflate: false });
    let read = 0;
    client.ws.on("message", (data: Buffer) => (read += data.length > 1_024 ? 1 : 0));
    client.ws.pause();
    client.send(request);
    await until(() => sent > 0);
    const underway = await stopped(() => sent);
    expect(underway).toBeLessThan(MOST_UNDERWAY);
    expect(read).toBe(0);
    client.ws.resume();
    await until(() => sent === all);
    await until(() => read === MESSAGES);
  });
});

it("a provider that does not read stops the client", { timeout: 120_000 }, async () => {
  const path = "/v1/realtime?model=voice/m";
  await using client = await dial(gateway.url, { key: KEY, path, perMessageDeflate: false });
  await client.until(({ type }) => type === "session.created");
  received = 0;
  provider!.pause();
  let written = 0;
  const message = JSON.stringify({ type: "input_audio_buffer.append", audio: TEXT });
  const writing = (async () => {
    for (; written < MESSAGES; written++) {
      await until(() => client.ws.bufferedAmount < 256 * 1024);
      client.ws.send(message);
    }
  })();
  await until(() => written > 0);
  expect(await stopped(() => written)).toBeLessThan(MOST_UNDERWAY);
  provider!.resume();
  await writing;
  await until(() => received === MESSAGES);
});
