// Connections at the listener, with its default limits.
import { once } from "node:events";
import { createServer, type RequestListener, type ServerResponse } from "node:http";
import { connect, type AddressInfo, type Socket } from "node:net";
import { Duplex } from "node:stream";
import { WebSocket } from "ws";
import { BOUNDS } from "../../../src/lib/bounds.ts";
import { listen, type ListenLimits } from "../../../src/runtime/http/listener.ts";
import { createAcceptor } from "../../../src/runtime/sockets/socket-acceptor.ts";
import { RequestLanes } from "../../../src/runtime/sockets/request-lanes.ts";
import { createQueryLimiter } from "../../../src/runtime/ledger/usage-queries.ts";
import { until } from "../../kit/wait.ts";
import { faultIn, type Driver, type Outcome } from "./way.ts";

async function opened(handler: RequestListener, limits: Partial<ListenLimits> = {}) {
  const at = await listen({ host: "127.0.0.1", port: 0, handler, limits });
  return Object.assign(at, {
    async [Symbol.asyncDispose]() {
      at.destroy();
      await at.close(0);
    },
  });
}
async function dialled(port: number): Promise<Socket & { said(): string }> {
  const socket = connect(port, "127.0.0.1").on("error", () => {});
  await once(socket, "connect");
  let text = "";
  socket.on("data", (chunk) => (text += chunk));
  return Object.assign(socket, { said: () => text });
}
const GET = "GET / HTTP/1.1\r\nhost: localhost\r\n\r\n";
const answered = (text: string) => text.match(/HTTP\/1\.1 200 /g)?.length ?? 0;
const refusal = (text: string): Outcome => {
  const last = text.slice(text.lastIndexOf("HTTP/1.1"));
  return { status: Number(last.slice(9, 12)), text: last };
};
const well: RequestListener = (_req, res) => void res.end("ok");

/** A socket without a network: written data is kept. */
class Pretended extends Duplex {
  said = "";
  readonly remoteAddress: string;
  bytesRead = 0;
  constructor(address: string) {
    super();
    this.remoteAddress = address;
  }
  setTimeout(): this {
    return this;
  }
  setNoDelay(): this {
    return this;
  }
  override _read(): void {}
  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    this.said += chunk.toString();
    done();
  }
}
/** This many connections, from the given number of addresses. */
async function crowd(n: number, address: (i: number) => string): Promise<Outcome> {
  await using at = await opened(well);
  let last: Pretended;
  for (let i = 0; i < n; i++) at.server.emit("connection", (last = new Pretended(address(i))));
  return last!.said === "" ? "passes" : refusal(last!.said);
}
/** The same with sockets, with a low limit by the operator. */
async function few(n: number, limits: Partial<ListenLimits>): Promise<Outcome> {
  await using at = await opened(well, limits);
  const all: Awaited<ReturnType<typeof dialled>>[] = [];
  for (let i = 0; i < n; i++) all.push(await dialled(at.port));
  const last = all.at(-1)!;
  last.write(GET);
  await until(() => last.said().includes("ok") || last.said().includes("}}"));
  const said = last.said();
  for (const socket of all) socket.destroy();
  return said.includes("ok") ? "passes" : refusal(said);
}

/** Requests that are open at the same time. */
async function atOnce(n: number): Promise<Outcome> {
  const waiting: ServerResponse[] = [];
  await using at = await opened((_req, res) => void waiting.push(res));
  const socket = await dialled(at.port);
  socket.write(GET.repeat(n));
  const most = BOUNDS.inFlightPerSocket.max;
  await until(() => waiting.length === Math.min(n, most));
  for (const res of waiting) res.end("ok");
  await until(() => answered(socket.said()) === n || socket.said().includes("}}"));
  socket.destroy();
  return answered(socket.said()) === n ? "passes" : refusal(socket.said());
}

/** One after another. The last response announces the end of the connection. */
async function inTurn(n: number): Promise<Outcome> {
  await using at = await opened(well);
  const socket = await dialled(at.port);
  let over = false;
  let seen = 0;
  socket.on("data", (chunk) => {
    seen += answered(String(chunk));
    over ||= /\r\nconnection: close\r\n/i.test(String(chunk));
  });
  // As many in parallel as possible, to save time.
  const { max } = BOUNDS.inFlightPerSocket;
  for (let sent = 0; sent < n && !over; sent += max) {
    const some = Math.min(max, n - sent);
    const before = seen;
    socket.write(GET.repeat(some));
    while (!over && seen - before < some) await once(socket, "data");
  }
  socket.destroy();
  return seen === n ? "passes" : over ? "beyond" : refusal(socket.said());
}

async function headed(n: number): Promise<Outcome> {
  await using at = await opened(well);
  const socket = await dialled(at.port);
  const more = Array.from({ length: n - 1 }, (_, i) => `x-${i}: 1\r\n`).join("");
  socket.write(`GET / HTTP/1.1\r\nhost: localhost\r\n${more}\r\n`);
  await until(() => socket.said().includes("ok") || socket.said().includes("}}"));
  socket.destroy();
  return answered(socket.said()) === 1 ? "passes" : refusal(socket.said());
}

/** Reports that wait while the maximum number runs. */
async function waiting(n: number, key: (i: number) => string): Promise<Outcome> {
  const read = createQueryLimiter(60_000);
  const away = new AbortController();
  const ask = (who: string) => read(who, away.signal, () => new Promise<never>(() => {}));
  for (const who of ["a", "b", "c", "k"]) ask(who).catch(() => {});
  for (let i = 0; i < n - 1; i++) ask(key(i)).catch(() => {});
  const last = faultIn(() => ask(key(n)));
  const outcome = await Promise.race([
    last,
    new Promise<Outcome>((r) => setImmediate(r, "passes")),
  ]);
  away.abort();
  return outcome;
}

/** An acceptor behind a server, and a client of it. Resolves to the close code, if it closes. */
async function accepted(most: number, send: (ws: WebSocket) => void): Promise<Outcome> {
  const acceptor = createAcceptor(most, []);
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const outcome = new Promise<Outcome>((resolve) => {
    server.on("upgrade", (req, socket, head) =>
      acceptor.handleUpgrade(req, socket, head, (ws) => {
        ws.on("message", () => resolve("passes"));
        ws.on("error", () => resolve("beyond"));
      }),
    );
  });
  const client = new WebSocket(`ws://127.0.0.1:${(server.address() as AddressInfo).port}`);
  client.on("error", () => {});
  await once(client, "open");
  send(client);
  const got = await outcome;
  client.terminate();
  server.close();
  return got;
}

function fragmented(ws: WebSocket, n: number): void {
  for (let i = 1; i <= n; i++) ws.send("x", { fin: i === n });
}

const UNBOUNDED = { tryReserve: () => true, release() {} };

/** So many requests on one WebSocket. The ones before the last `open` run for ever. */
async function asked(n: number, lane: (i: number) => string | undefined): Promise<RequestLanes> {
  const lanes = new RequestLanes(() => new Promise(() => {}), UNBOUNDED);
  for (let i = 0; i < n; i++) lanes.add({ body: "{}", lane: lane(i) });
  return lanes;
}
const lanesOf = (n: number) =>
  faultIn(async () => {
    const lanes = new RequestLanes(() => Promise.resolve(), UNBOUNDED);
    for (let i = 0; i < n; i++) {
      lanes.add({ body: "{}", lane: `l${i}` });
      await new Promise(setImmediate);
    }
  });
const running = async (n: number): Promise<Outcome> =>
  (await asked(n, (i) => `l${i}`)).running === n ? "passes" : "beyond";

export const sockets = {
  socketMessage: {
    relayed: { drive: (n) => accepted(BOUNDS.socketMessage.max, (ws) => ws.send(Buffer.alloc(n))) },
  },
  socketFragments: {
    "of one message": { drive: (n) => accepted(1_000_000, (ws) => fragmented(ws, n)) },
  },
  socketLanes: { "one after the other": { drive: lanesOf } },
  socketRunning: { "of as many lanes": { drive: running } },
  socketQueue: { "of one lane": { drive: (n) => faultIn(() => asked(n + 1, () => undefined)) } },
  connections: {
    "of as many addresses": { drive: (n) => crowd(n, (i) => `2001:db8::${i.toString(16)}`) },
    "with sockets": { most: 3, drive: (n) => few(n, { connections: 3 }) },
  },
  connectionsPerAddress: {
    "of one address": { drive: (n) => crowd(n, () => "192.0.2.1") },
    "with sockets": { most: 3, drive: (n) => few(n, { connectionsPerAddress: 3 }) },
  },
  // A client that is told to wait may retry under the same conditions.
  inFlightPerSocket: { "at once": { drive: atOnce } },
  requestsPerSocket: { "one after the other": { drive: inTurn } },
  // Headers have a status of their own.
  headers: { "of one request": { status: 431, drive: headed } },
  usageQueries: { "of as many keys": { drive: (n) => waiting(n, (i) => `k${i}`) } },
  usageQueriesPerKey: { "of one key": { drive: (n) => waiting(n, () => "k") } },
} satisfies { readonly [name: string]: Driver };
