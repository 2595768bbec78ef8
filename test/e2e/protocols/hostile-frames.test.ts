// WebSocket clients that attack: mutated frames, HTTP after the upgrade, and clients that do not read. The gateway answers no second
// HTTP request on such a connection, keeps nothing of it, and serves the next client.
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { say, scriptedModel, startUpstream, type TestUpstream } from "tollgate/testing";
import { digestKey } from "../../../src/lib/api-key.ts";
import { startInProcess } from "../../kit/in-process.ts";
import { NIGHTLY } from "../../kit/law-effort.ts";
import { dial, isTerminal } from "../../kit/socket-client.ts";
import { until } from "../../kit/wait.ts";

const KEY = "alice-key";
const MUTATIONS = NIGHTLY ? 25_000 : 200;
const IDLE = NIGHTLY ? 5_000 : 100;
const LONG = { timeout: 900_000 };

let up: TestUpstream;
let gateway: Awaited<ReturnType<typeof startInProcess>>;
beforeAll(async () => {
  up = await startUpstream(scriptedModel(() => say("Fine.")));
  gateway = await startInProcess({
    yaml: `
frontends: [responses]
bounds: { connections: 20000, connections_per_address: 20000 }
middleware:
  - { use: auth, with: { keys: [{ id: alice, digest: "${digestKey(KEY)}" }] } }
providers: { plain: { use: openai-compatible, with: { api_key: k, base_url: "${up.url}/v1" } } }
`,
  });
});
afterAll(async () => {
  await gateway[Symbol.asyncDispose]();
  await up.close();
});

const openSockets = async (): Promise<number> => {
  const stats = (await gateway.ask("stats", {} as never)) as any;
  return Object.values(stats.webSocketsByFrontend as Record<string, number>).reduce(
    (a, b) => a + b,
    0,
  );
};
async function servesNext(): Promise<void> {
  await using client = await dial(gateway.url, { key: KEY });
  client.send({ type: "response.create", model: "plain/m", input: "Hi" });
  expect((await client.until(isTerminal)).at(-1).type).toBe("response.completed");
}

/** A connection after its handshake, as bytes. */
async function upgraded(): Promise<Socket & { text: () => string }> {
  const { port, hostname } = new URL(gateway.url);
  const socket = connect(Number(port), hostname).on("error", () => {});
  let text = "";
  socket.on("data", (chunk) => (text += chunk.toString("latin1")));
  socket.write(
    `GET /v1/responses HTTP/1.1\r\nHost: ${hostname}\r\nAuthorization: Bearer ${KEY}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n`,
  );
  await until(() => text.includes("\r\n\r\n"));
  expect(text).toMatch(/^HTTP\/1\.1 101 /);
  return Object.assign(socket, { text: () => text });
}

/** Start lines of HTTP responses. A pong may contain a request, because it returns a ping's bytes. */
const responses = ({ text }: Awaited<ReturnType<typeof upgraded>>) =>
  text().match(/HTTP\/1\.1 \d{3}/g);

/** A frame of a client, masked with zeros. */
function frame(payload: Buffer, opcode = 1): Buffer {
  const length =
    payload.length < 126
      ? Buffer.from([payload.length | 0x80])
      : Buffer.from([126 | 0x80, payload.length >> 8, payload.length & 0xff]);
  return Buffer.concat([Buffer.from([0x80 | opcode]), length, Buffer.alloc(4), payload]);
}

/** The same numbers in every run. */
function createRandom(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state % below;
  };
}

function mutated(random: (below: number) => number): Buffer {
  const texts = [
    '{"type":"response.create","model":"plain/none","input":"x"}',
    "{}",
    "\u{1f600}",
    "",
  ];
  const frames = Array.from({ length: 1 + random(3) }, () =>
    frame(Buffer.from(texts[random(texts.length)]!), [0, 1, 2, 8, 9, 10, 3, 11][random(8)]),
  );
  const bytes = Buffer.concat(frames);
  for (let i = random(6); i > 0; i--) bytes[random(bytes.length)]! ^= 1 << random(8);
  const rest = [
    Buffer.alloc(0),
    Buffer.from("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"),
    Buffer.from([0x81, 0xff, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]),
    Buffer.from([0x01, 0x80, 0, 0, 0, 0]),
  ][random(4)]!;
  return Buffer.concat([
    random(4) === 0 ? bytes.subarray(0, random(bytes.length + 1)) : bytes,
    rest,
  ]);
}

describe("hostile frames", () => {
  // First, so that the process has no free memory of other tests.
  it(`${IDLE} idle sockets take little memory`, LONG, async () => {
    globalThis.gc?.();
    const before = process.memoryUsage().rss;
    const sockets: Socket[] = [];
    for (let i = 0; i < IDLE; i += 50)
      sockets.push(...(await Promise.all(Array.from({ length: 50 }, () => upgraded()))));
    expect(await openSockets()).toBe(IDLE);
    globalThis.gc?.();
    const bytes = (process.memoryUsage().rss - before) / IDLE;
    const total = Math.round((bytes * IDLE) / 1e6);
    console.log(
      `${IDLE} idle sockets: ${total} MB, ${Math.round(bytes / 1_000)} kB each, both ends`,
    );
    if (NIGHTLY) expect(bytes).toBeLessThan(100_000);
    await servesNext();
    for (const socket of sockets) socket.destroy();
    await until(async () => (await openSockets()) === 0);
  });

  it(`${MUTATIONS} mutations end no process, answer no HTTP, and leave nothing`, LONG, async () => {
    const random = createRandom(7);
    for (let done = 0; done < MUTATIONS; done += 20)
      await Promise.all(
        Array.from({ length: 20 }, async () => {
          const socket = await upgraded();
          const bytes = mutated(random);
          const cut = random(bytes.length + 1);
          socket.write(bytes.subarray(0, cut));
          socket.end(bytes.subarray(cut));
          if (!socket.closed) await once(socket, "close");
          expect(responses(socket)).toHaveLength(1);
        }),
      );
    await until(async () => (await openSockets()) === 0);
    await servesNext();
  });

  it("HTTP after the upgrade is no request", async () => {
    const socket = await upgraded();
    socket.write("POST /v1/responses HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}");
    await once(socket, "close");
    expect(responses(socket)).toHaveLength(1);
    await servesNext();
  });

  it("a client that sends and never reads is not read any further", async () => {
    const socket = await upgraded();
    socket.pause();
    const message = frame(Buffer.from('{"type":"unknown"}'));
    const many = Buffer.concat(Array.from({ length: 2_000 }, () => message));
    let sent = 0;
    while (sent < 400 && socket.writableLength < 1_000_000) {
      socket.write(many);
      sent++;
      await new Promise(setImmediate);
    }
    expect(socket.writableLength).toBeGreaterThan(0);
    socket.destroy();
    await servesNext();
  });
});
